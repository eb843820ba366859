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
