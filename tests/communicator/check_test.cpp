#include <doctest/doctest.h>

#include <set>

#include "support/ops.hpp"
#include "support/ranks.hpp"
#include "support/values.hpp"

using namespace baton;
using namespace support;

namespace {

Options checked() {
  Options options = test_options();
  options.check = true;
  return options;
}

/// What one rank calls that differs from the others.
struct Case {
  const char* what;
  Call usual, unusual;
  std::vector<std::string> says;
};

/// Buffers of one rank.
struct Buffers {
  std::vector<double> in = std::vector<double>(24), out = std::vector<double>(24);
  Counts even{2, 2, 2, 2}, odd{2, 3, 1, 2};
  std::string long_label = std::string(600, 'm'), longer_label = std::string(601, 'm');

  Data data(std::int64_t count, Datatype type = Datatype::f32) { return {in.data(), count, type}; }
  Data room(std::int64_t count, Datatype type = Datatype::f32) { return {out.data(), count, type}; }

  std::vector<Case> cases(int rank) {
    const auto with = [](Call call, const Choice& choice) {
      call.choice = choice;
      return call;
    };
    const auto counts = [&](const Counts& list) {
      Call call = calls::all_gather(data(list[static_cast<std::size_t>(rank)]), room(8));
      call.recv_counts = list;
      return call;
    };
    const Call reduce = calls::all_reduce(data(4), room(4), sum);
    const auto labelled = [&](int root, std::string_view label) {
      return calls::reduce(data(4, Datatype::u64), room(4, Datatype::u64),
                           Op::user(fold_each<multiplied_modulo>, nullptr, true, label), root);
    };
    const auto user = [&](bool commutes) {
      return calls::all_reduce(data(4, Datatype::u64), room(4, Datatype::u64),
                               Op::user(fold_each<multiplied_modulo>, nullptr, commutes, "mine"));
    };
    return {
        {"count", reduce, calls::all_reduce(data(5), room(5), sum), {"of 4 f32", "of 5 f32"}},
        {"datatype",
         reduce,
         calls::all_reduce(data(4, Datatype::f64), room(4, Datatype::f64), sum),
         {"of 4 f32", "of 4 f64"}},
        {"op", reduce, calls::all_reduce(data(4), room(4), max), {"sum", "max"}},
        {"commutativity", user(true), user(false), {"mine", "not commutative"}},
        {"root behind a long label",
         labelled(0, long_label),
         labelled(1, long_label),
         {"mmm…, root 0", "mmm…, root 1"}},
        {"long label", labelled(0, long_label), labelled(0, longer_label), {"mmm…, root 0"}},
        {"root", calls::broadcast(data(4), 0), calls::broadcast(data(4), 1), {"root 0", "root 1"}},
        {"collective", reduce, calls::scan(data(4), room(4), sum), {"all_reduce", "scan"}},
        {"barrier", calls::barrier(), reduce, {"barrier", "all_reduce"}},
        {"algorithm", with(reduce, {"ring", 0}), with(reduce, {"tree", 0}), {"ring", "tree"}},
        {"segment",
         with(reduce, {"ring", 0}),
         with(reduce, {"ring", 64}),
         {"segment 0", "segment 64"}},
        {"counts", counts(even), counts(odd), {"2, 2, 2, 2", "2, 3, 1, 2"}},
        {"wrong on one rank",
         reduce,
         calls::all_reduce(data(4), {nullptr, 4, Datatype::f32}, sum),
         {"all_reduce", "null pointer"}},
        {"unknown algorithm on one rank", reduce, with(reduce, {"rong", 0}), {"found \"rong\""}},
        {"wrong root on one rank",
         calls::broadcast(data(4), 0),
         calls::broadcast(data(4), 9),
         {"root from 0 to 3", "found 9"}},
        {"rows",
         calls::all_to_all(ConstTensor(in.data(), Shape{4, 4}), Tensor(out.data(), Shape{4, 4}), 0,
                           0),
         calls::all_to_all(ConstTensor(in.data(), Shape{4, 4}), Tensor(out.data(), Shape{4, 4}), 1,
                           1),
         {"rows"}},
    };
  }
};

void works(Communicator& c) {
  std::vector<std::int32_t> one{1};
  c.all_reduce(one, sum);
  CHECK(one[0] == c.size());
}

constexpr int size = 4;

/// Every case, `odd_one` being the rank that differs; all ranks must say the same.
void mismatches(int odd_one, bool nonblocking) {
  const std::size_t cases = Buffers().cases(0).size();
  std::vector<std::vector<std::string>> said(cases, std::vector<std::string>(size));
  on_ranks(
      size,
      [&](Communicator& c) {
        Buffers buffers;
        const std::vector<Case> all = buffers.cases(c.rank());
        for (std::size_t i = 0; i < all.size(); ++i) {
          const Call& call = c.rank() == odd_one ? all[i].unusual : all[i].usual;
          const Error error = error_of([&] {
            if (nonblocking) {
              c.start(call).wait();
            } else {
              c.run(call);
            }
          });
          CHECK_MESSAGE(error.code == ErrorCode::mismatch, std::string(std::string(all[i].what)),
                        ": ", std::string(name(error.code)));
          CHECK(error.rank == c.rank());
          said[i][static_cast<std::size_t>(c.rank())] = error.what();
          works(c);
        }
      },
      checked());
  Buffers buffers;
  const std::vector<Case> all = buffers.cases(0);
  for (std::size_t i = 0; i < cases; ++i) {
    CHECK_MESSAGE(std::set<std::string>(said[i].begin(), said[i].end()).size() == 1,
                  std::string(all[i].what));
    for (const std::string& part : all[i].says) {
      CHECK_MESSAGE(holds(said[i][0], {part}), std::string(std::string(all[i].what)), ": ",
                    said[i][0]);
    }
    CHECK_MESSAGE(holds(said[i][0], {"rank " + std::to_string(odd_one)}),
                  std::string(std::string(all[i].what)), ": ", said[i][0]);
  }
}

}  // namespace

TEST_CASE("a call that differs on one rank is a mismatch on all, in the same words") {
  mismatches(2, false);
  mismatches(3, false);
}

TEST_CASE("the same, nonblocking") { mismatches(1, true); }

TEST_CASE("what differs on rank 0 is found as well") {
  on_ranks(
      3,
      [](Communicator& c) {
        std::vector<float> x(c.rank() == 0 ? 5 : 4);
        const Error error = error_of([&] { c.all_reduce(x, sum); });
        CHECK(error.code == ErrorCode::mismatch);
        CHECK(holds(error.what(), {"of 5 f32", "on rank 0", "of 4 f32", "on rank 1"}));
        works(c);
      },
      checked());
}

TEST_CASE("wrong on all ranks in different ways") {
  on_ranks(
      2,
      [](Communicator& c) {
        std::vector<float> x(4), y(5);
        const Error error =
            error_of([&] { c.rank() == 0 ? c.broadcast(x, 7) : c.all_reduce(x, y, sum); });
        CHECK(error.code == ErrorCode::mismatch);
        CHECK(holds(error.what(), {"root", "found 7"}));
        works(c);
      },
      checked());
}

TEST_CASE("a mismatch among several under way leaves the others alone") {
  on_ranks(
      3,
      [](Communicator& c) {
        std::vector<float> a(100, 1), b(c.rank() == 1 ? 11 : 10), d(5000, 2);
        Request first = c.start_all_reduce(a, sum), second = c.start_all_reduce(b, sum),
                third = c.start_all_reduce(d, sum);
        third.wait();
        CHECK(d == std::vector<float>(5000, 6));
        CHECK(error_of([&] { second.wait(); }).code == ErrorCode::mismatch);
        first.wait();
        CHECK(a == std::vector<float>(100, 3));
        works(c);
      },
      checked());
}

TEST_CASE("test() reports a mismatch too") {
  on_ranks(
      2,
      [](Communicator& c) {
        std::vector<float> x(c.rank() == 0 ? 3 : 2);
        Request request = c.start_all_reduce(x, sum);
        const Error error = error_of([&] {
          while (!request.test()) std::this_thread::yield();
        });
        CHECK(error.code == ErrorCode::mismatch);
        works(c);
      },
      checked());
}

TEST_CASE("checking changes no result") {
  on_ranks(5,
           [](Communicator& c) {
             for (int turn = 0; turn < 50; ++turn) {
               works(c);
               std::vector<std::int32_t> mine{c.rank(), turn}, all(10);
               c.all_gather(mine, all);
               for (std::size_t i = 0; i < 10; ++i) {
                 CHECK(all[i] == (i % 2 == 0 ? static_cast<int>(i / 2) : turn));
               }
               c.barrier();
             }
           },
           checked(), {.seed = 9});
}

TEST_CASE("every count of a long list counts, and so does a user type's size") {
  constexpr int ranks = 11;
  on_ranks(
      ranks,
      [](Communicator& c) {
        std::vector<float> mine(4), all(4 * ranks);
        const auto gather = [&](const Counts& counts) {
          c.all_gather_v(std::span(mine).first(
                             static_cast<std::size_t>(counts[static_cast<std::size_t>(c.rank())])),
                         std::span(all).first(2 * ranks), counts);
        };
        const Counts even(ranks, 2);
        // Two counts behind the eighth differ, or have changed places.
        Counts odd = even, turned = even;
        odd[9] = 1, odd[10] = 3;
        turned[9] = 3, turned[10] = 1;
        for (const auto& [usual, unusual] : {std::pair(even, odd), std::pair(odd, turned)}) {
          const Counts& own = c.rank() == 4 ? unusual : usual;
          const Error error = error_of([&] { gather(own); });
          CHECK(error.code == ErrorCode::mismatch);
          CHECK(holds(error.what(),
                      {"of counts 2, 2, 2, 2, 2, 2, 2, 2, …", "on rank 0", "on rank 4"}));
        }
        gather(even);

        std::vector<std::byte> bytes(48);
        const auto reduce = [&](std::size_t of) {
          const Op op = Op::user([](void*, const void*, const void*, std::size_t, void*) {},
                                 nullptr, true, "nothing", of);
          c.all_reduce(Data(bytes.data(), 4, Datatype::user), op);
        };
        const Error error = error_of([&] { reduce(c.rank() == 3 ? 8 : 12); });
        CHECK(error.code == ErrorCode::mismatch);
        CHECK(holds(error.what(), {"of 12 B, nothing on rank 0", "of 8 B, nothing on rank 3"}));
        reduce(12);
        works(c);
      },
      checked());
}

TEST_CASE("counts of a pair that differ on its two sides are a mismatch on all ranks") {
  on_ranks(
      4,
      [](Communicator& c) {
        const auto own = static_cast<std::size_t>(c.rank());
        std::vector<float> in(16), out(16);
        Counts sends(4, 2), receives(4, 2);
        // Rank 2 sends more to rank 1 than that expects, and less to rank 3.
        if (c.rank() == 2) sends[1] = 3, sends[3] = 1;
        const auto exchange = [&](bool nonblocking) {
          const ConstData from(in.data(), 8, Datatype::f32);
          const Data to(out.data(), 8, Datatype::f32);
          if (nonblocking) return c.start_all_to_all_v(from, sends, to, receives).wait();
          c.all_to_all_v(from, sends, to, receives);
        };
        for (const bool nonblocking : {false, true}) {
          const Error error = error_of([&] { exchange(nonblocking); });
          CHECK(error.code == ErrorCode::mismatch);
          CHECK(std::string(error.what()) ==
                "expected equal counts on both sides, found rank 2 to send 3 elements to rank 1, "
                "which expects 2");
        }
        sends.assign(4, 2);
        exchange(false);

        // Counts that the root alone knows.
        Counts counts{1, 2, 3, 2};
        const auto count = static_cast<std::int64_t>(own == 3 ? 1 : counts[own]);
        Call gather = calls::gather_v(
            ConstData(in.data(), count, Datatype::f32), Data(out.data(), 8, Datatype::f32),
            c.rank() == 0 ? std::span<const std::int64_t>(counts) : std::span<const std::int64_t>(),
            0);
        gather.counts_at_root = true;
        CHECK(
            std::string(error_of([&] { c.run(gather); }).what()) ==
            "expected equal counts on both sides, found rank 3 to send 1 elements to rank 0, which "
            "expects 2");
        Call scatter = calls::scatter_v(
            ConstData(in.data(), 8, Datatype::f32), Data(out.data(), count, Datatype::f32),
            c.rank() == 0 ? std::span<const std::int64_t>(counts) : std::span<const std::int64_t>(),
            0);
        scatter.counts_at_root = true;
        CHECK(
            std::string(error_of([&] { c.run(scatter); }).what()) ==
            "expected equal counts on both sides, found rank 0 to send 2 elements to rank 3, which "
            "expects 1");
        counts[3] = 1;
        c.run(scatter);
        works(c);
      },
      checked());
}

TEST_CASE("each rank's own view of an uneven all_to_all is no mismatch") {
  on_ranks(
      3,
      [](Communicator& c) {
        // Rank r sends r + 1 elements to everybody.
        const int r = c.rank();
        const Counts sends(3, r + 1), receives{1, 2, 3};
        std::vector<std::int32_t> in(static_cast<std::size_t>(3 * (r + 1)), r), out(6);
        c.all_to_all_v(in, sends, out, receives);
        CHECK(out == std::vector<std::int32_t>{0, 1, 1, 2, 2, 2});
      },
      checked());
}
