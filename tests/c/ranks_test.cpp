#include <atomic>
#include <cstring>
#include <set>
#include <stdexcept>
#include <thread>

#include "support.hpp"

using namespace c_support;

namespace {

int body_returns(baton_communicator* world, void* context) {
  return baton_rank(world) > 0 ? *static_cast<int*>(context) : 0;
}

/// 2x2 matrices, whose product does not commute, modulo 2^64.
struct Matrix {
  std::uint64_t a = 1, b = 0, c = 0, d = 1;
  bool operator==(const Matrix&) const = default;
};
Matrix operator*(const Matrix& x, const Matrix& y) {
  return {x.a * y.a + x.b * y.c, x.a * y.b + x.b * y.d, x.c * y.a + x.d * y.c,
          x.c * y.b + x.d * y.d};
}
void multiply(void* into, const void* left, const void* right, size_t count, void* context) {
  ++*static_cast<std::atomic<int>*>(context);
  for (size_t i = 0; i < count; ++i)
    static_cast<Matrix*>(into)[i] =
        static_cast<const Matrix*>(left)[i] * static_cast<const Matrix*>(right)[i];
}

}  // namespace

TEST_CASE("versions") {
  CHECK(baton_abi_version() == BATON_ABI_VERSION);
  CHECK(std::string(baton_version()).find('.') != std::string::npos);
}

TEST_CASE("options are set by name, and have a table") {
  baton_options* options = nullptr;
  OK(baton_options_create(&options));
  OK(baton_options_set(options, "BATON_ALL_REDUCE", "ring:128K"));
  FAILS(baton_options_set(options, "BATON_ALL_REDUCE", "ring:lots"), BATON_INVALID_ARGUMENT,
        {"BATON_ALL_REDUCE", "found \"ring:lots\""});
  FAILS(baton_options_set(options, "BATON_RING", "1"), BATON_INVALID_ARGUMENT,
        {"BATON_CHECK, BATON_EXPLAIN", "found \"BATON_RING\""});
  baton_options_destroy(options);

  CHECK(baton_option_count() > 15);
  std::set<std::string> names;
  for (int i = 0; i < baton_option_count(); ++i) {
    const char *name = nullptr, *form = nullptr, *meaning = nullptr;
    OK(baton_option_info(i, &name, &form, &meaning));
    names.insert(name);
    CHECK(std::strlen(form) > 0);
    CHECK(std::strlen(meaning) > 0);
  }
  CHECK(names.size() == static_cast<std::size_t>(baton_option_count()));
  CHECK(names.contains("BATON_ALL_REDUCE"));
  OK(baton_option_info(0, nullptr, nullptr, nullptr));
  for (const int index : {-1, baton_option_count()})
    FAILS(baton_option_info(index, nullptr, nullptr, nullptr), BATON_INVALID_ARGUMENT,
          {"expected an option from 0", "found " + std::to_string(index)});
}

TEST_CASE("without options, the environment decides; with options, it has no say") {
  setenv("BATON_TIMEOUT", "soon", 1);
  const auto body = [](baton_communicator*, void*) { return 0; };
  baton_options* options = nullptr;
  for (const int status :
       {baton_run_threads(1, nullptr, body, nullptr), baton_options_from_environment(&options)})
    FAILS(status, BATON_INVALID_ARGUMENT, {"BATON_TIMEOUT", "found \"soon\""});
  OK(baton_options_create(&options));
  OK(baton_run_threads(1, options, body, nullptr));
  baton_options_destroy(options);
  unsetenv("BATON_TIMEOUT");
}

TEST_CASE("a function of a rank fails") {
  const auto run = [](int returned) {
    return baton_run_threads(3, Options(), body_returns, &returned);
  };
  for (const int returned : {-3, 42, int{BATON_TIMEOUT}})  // no call of its thread has failed
    FAILS(run(returned), BATON_FAILED,
          {"expected the function of rank 1 to return 0, found " + std::to_string(returned)});
  const auto fails = [](baton_communicator* world, void*) {
    return baton_rank(world) == 0 ? 0 : baton_broadcast(world, nullptr, 1, 77, 0, nullptr);
  };
  FAILS(baton_run_threads(3, Options(), fails, nullptr), BATON_INVALID_ARGUMENT,
        {"datatype", "found 77"});
  const auto throws = [](baton_communicator* world, void*) -> int {
    if (baton_rank(world) == 1) throw std::out_of_range("beyond the last page");
    if (baton_rank(world) == 2) throw 5;
    return 0;
  };
  FAILS(baton_run_threads(3, Options(), throws, nullptr), BATON_FAILED, {"beyond the last page"});
  const auto throws_number = [](baton_communicator*, void*) -> int { throw 5; };
  FAILS(baton_run_threads(1, Options(), throws_number, nullptr), BATON_FAILED,
        {"no std::exception"});
  const auto throws_memory = [](baton_communicator*, void*) -> int { throw std::bad_alloc(); };
  FAILS(baton_run_threads(1, Options(), throws_memory, nullptr), BATON_MEMORY, {"enough memory"});
  const auto nested = [](baton_communicator*, void*) {  // an error that is passed on twice
    int returned = 42;
    return baton_run_threads(2, Options(), body_returns, &returned);
  };
  FAILS(baton_run_threads(1, Options(), nested, nullptr), BATON_FAILED,
        {"the function of rank 1 to return 0, found 42"});
  for (const int ranks : {0, -1})
    FAILS(baton_run_threads(ranks, Options(), body_returns, nullptr), BATON_INVALID_ARGUMENT,
          {"size is " + std::to_string(ranks)});
}

TEST_CASE("without a launcher, ranks are threads") {
  std::atomic<int> sum{0};
  const auto body = [](baton_communicator* world, void* context) {
    static_cast<std::atomic<int>*>(context)->fetch_add(10 * baton_size(world) + baton_rank(world));
    return baton_barrier(world, nullptr);
  };
  OK(baton_launch(3, Options(), body, &sum));
  CHECK(sum == 93);
  int returned = 42;
  FAILS(baton_launch(2, Options(), body_returns, &returned), BATON_FAILED, {"rank 1", "42"});
}

TEST_CASE("threads of the caller") {
  constexpr int size = 3;
  baton_transport* transports[size];
  OK(baton_thread_transports(size, nullptr, transports));
  const Options options;
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int r = 0; r < size; ++r)
    threads.emplace_back([&, r] {
      CHECK(baton_transport_rank(transports[r]) == r);
      CHECK(baton_transport_size(transports[r]) == size);
      baton_communicator* world = nullptr;
      CHECK(baton_communicator_create(transports[r], options, &world) == BATON_OK);
      int x = r + 1;
      CHECK(baton_all_reduce(world, &x, &x, 1, BATON_I32, BATON_SUM, nullptr) == BATON_OK);
      right += x == 6;
      baton_communicator_destroy(world);
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(right == size);

  OK(baton_thread_transports(2, nullptr, transports));  // no communicator is made
  for (int r = 0; r < 2; ++r) baton_transport_destroy(transports[r]);
  OK(baton_thread_transports(1, nullptr, transports));  // the transport goes with the failure
  FAILS(baton_communicator_create(transports[0], options, nullptr), BATON_INVALID_ARGUMENT,
        {"an address for the handle"});
  FAILS(baton_thread_transports(0, nullptr, transports), BATON_INVALID_ARGUMENT, {"size is 0"});
}

TEST_CASE("hosts of threads change the choice") {
  const int hosts[] = {0, 0, 1, 1};
  baton_transport* transports[4];
  OK(baton_thread_transports(4, hosts, transports));
  const Options options(Settings{{"BATON_ALL_REDUCE", "hierarchical"}});
  std::vector<std::thread> threads;
  for (baton_transport* transport : transports)
    threads.emplace_back([&, transport] {
      baton_communicator* world = nullptr;
      CHECK(baton_communicator_create(transport, options, &world) == BATON_OK);
      double x = 1;
      CHECK_MESSAGE(baton_all_reduce(world, &x, &x, 1, BATON_F64, BATON_SUM, nullptr) == BATON_OK,
                    std::string(baton_last_error()));
      CHECK(x == 4);
      baton_communicator_destroy(world);
    });
  for (std::thread& thread : threads) thread.join();
  on_ranks(4, [](baton_communicator* world) {  // one host
    double x = 1;
    FAILS(baton_all_reduce(world, &x, &x, 1, BATON_F64, BATON_SUM, "hierarchical"),
          BATON_INVALID_ARGUMENT, {"hierarchical"});
  });
}

TEST_CASE("splits") {
  on_ranks(5, [](baton_communicator* world) {
    const int rank = baton_rank(world);
    auto* part = reinterpret_cast<baton_communicator*>(1);
    OK(baton_split(world, rank == 4 ? -1 : rank % 2, -rank, &part));
    if (rank == 4) {
      CHECK(part == nullptr);
      return;
    }
    CHECK(baton_size(part) == 2);
    OK(baton_set_name(part, "half"));
    FAILS(baton_set_name(part, ""), BATON_INVALID_ARGUMENT, {"expected a name"});
    FAILS(baton_set_name(part, nullptr), BATON_INVALID_ARGUMENT, {"a name"});
    CHECK(baton_rank(part) == (rank < 2 ? 1 : 0));  // by key
    int x = rank;
    OK(baton_all_reduce(part, &x, &x, 1, BATON_I32, BATON_SUM, nullptr));
    CHECK(x == 2 * (rank % 2) + 2);
    baton_communicator_destroy(part);
  });
}

TEST_CASE("the survivors' communicator") {
  on_ranks(4, [](baton_communicator* world) {
    if (baton_rank(world) == 1) return;
    int x = baton_rank(world);
    CHECK(baton_all_reduce(world, &x, &x, 1, BATON_I32, BATON_SUM, "ring") == BATON_TRANSPORT);
    baton_communicator* survivors = nullptr;
    OK(baton_shrink(world, 60, &survivors));
    CHECK(baton_size(survivors) == 3);
    x = baton_rank(world);
    OK(baton_all_reduce(survivors, &x, &x, 1, BATON_I32, BATON_SUM, nullptr));
    CHECK(x == 5);
    baton_communicator_destroy(survivors);
  });
}

TEST_CASE("messages between two ranks, to oneself, and requests that outlive the communicator") {
  on_ranks(3, [](baton_communicator* world) {
    const int rank = baton_rank(world), next = (rank + 1) % 3, before = (rank + 2) % 3;
    baton_communicator* own = nullptr;
    OK(baton_split(world, 0, 0, &own));
    std::int64_t out[2] = {rank, 10 * rank}, in[2] = {-1, -1}, self = -1;
    baton_request *sent = nullptr, *received = nullptr, *to_self = nullptr;
    OK(baton_start_recv(own, in, 2, BATON_I64, before, 3, &received));
    OK(baton_start_send(own, out, 2, BATON_I64, next, 3, &sent));
    OK(baton_start_recv(own, &self, 1, BATON_I64, rank, 1023, &to_self));
    OK(baton_send(own, out, 1, BATON_I64, rank, 1023));
    OK(baton_progress(own));
    baton_communicator_destroy(own);
    OK(baton_wait(&received));
    OK(baton_wait(&sent));
    int done = 0, status = BATON_OK;
    while (status == BATON_OK && !done) status = baton_test(&to_self, &done);
    OK(status);
    CHECK(in[1] == 10 * before);
    CHECK(self == rank);
    if (rank == 0) OK(baton_send(world, out, 2, BATON_I64, 1, 0));
    if (rank == 1) {
      OK(baton_recv(world, in, 2, BATON_I64, 0, 0));
      CHECK(in[0] == 0);
    }
  });
}

TEST_CASE("test() says when an operation is not complete") {
  on_ranks(2, [](baton_communicator* world) {
    int x = 0, done = 7;
    if (baton_rank(world) == 1) {
      OK(baton_recv(world, &x, 1, BATON_I32, 0, 0));
      x = 5;
      OK(baton_send(world, &x, 1, BATON_I32, 0, 1));
      return;
    }
    baton_request* request = nullptr;
    OK(baton_start_recv(world, &x, 1, BATON_I32, 1, 1, &request));
    OK(baton_test(&request, &done));
    CHECK(done == 0);
    CHECK(request != nullptr);
    OK(baton_send(world, &x, 1, BATON_I32, 1, 0));
    OK(baton_wait(&request));
    CHECK(x == 5);
  });
}

TEST_CASE("a user's op on elements of its own keeps the order of ranks") {
  std::atomic<int> calls{0};
  on_ranks(5, [&](baton_communicator* world) {
    baton_op op = 0;
    OK(baton_op_create(multiply, &calls, 0, "matrix product", sizeof(Matrix), &op));
    CHECK(op > BATON_BIT_XOR);
    const auto own = [](int r) { return Matrix{static_cast<std::uint64_t>(r + 1), 2, 3, 1}; };
    std::vector<Matrix> x(7, own(baton_rank(world))), y(7);
    Matrix product;
    for (int r = 0; r < 5; ++r) product = product * own(r);
    OK(baton_all_reduce(world, x.data(), y.data(), 7, BATON_USER, op, nullptr));
    CHECK(y == std::vector<Matrix>(7, product));
    FAILS(baton_all_reduce(world, x.data(), y.data(), 7, BATON_USER, op, "ring"),
          BATON_INVALID_ARGUMENT, {"all_reduce", "ring"});
    baton_op_destroy(op);
  });
  CHECK(calls > 0);
}

TEST_CASE("a user's op on a datatype of the library, with its default label") {
  on_ranks(3, [](baton_communicator* world) {
    const auto larger = [](void* into, const void* left, const void* right, size_t count, void*) {
      for (size_t i = 0; i < count; ++i) {
        const int a = static_cast<const int*>(left)[i], b = static_cast<const int*>(right)[i];
        static_cast<int*>(into)[i] = a > b ? a : b;
      }
    };
    baton_op op = 0;
    OK(baton_op_create(larger, nullptr, 1, nullptr, 0, &op));
    int x = baton_rank(world) == 1 ? 9 : 4;
    OK(baton_all_reduce(world, &x, &x, 1, BATON_I32, op, nullptr));
    CHECK(x == 9);
    FAILS(baton_all_reduce(world, &x, &x, 1, BATON_USER, op, nullptr), BATON_INVALID_ARGUMENT,
          {"element_bytes"});
    baton_op_destroy(op);
  });
}

TEST_CASE("sizes of datatypes, and a reduction on each") {
  const std::size_t bytes[] = {1, 1, 4, 4, 8, 8, 1, 1, 2, 2, 4, 8};
  for (int type = BATON_I8; type <= BATON_F64; ++type)
    CHECK(baton_datatype_bytes(type) == bytes[type]);
  for (const int none : {int{BATON_USER}, -1, 13}) CHECK(baton_datatype_bytes(none) == 0);
  on_ranks(2, [](baton_communicator* world) {
    std::vector<unsigned char> x(64), y(64, 1);
    for (int type = BATON_I8; type <= BATON_F64; ++type) {
      OK(baton_all_reduce(world, x.data(), y.data(), 8, type, BATON_MAX, nullptr));
      CHECK(std::count(y.begin(), y.end(), 0) == static_cast<long>(8 * baton_datatype_bytes(type)));
      std::fill(y.begin(), y.end(), 1);
    }
    // Each built-in op by its own name: 12, then 10, of two ranks.
    const int own = baton_rank(world) == 0 ? 12 : 10;
    const int results[] = {0, 22, 11, 120, 10, 12, 1, 1, 0, 8, 14, 6};
    for (int op = BATON_SUM; op <= BATON_BIT_XOR; ++op) {
      int z = 0;
      OK(baton_all_reduce(world, &own, &z, 1, BATON_I32, op, nullptr));
      CHECK_MESSAGE(z == results[op], op);
    }
  });
}

TEST_CASE("MPI is refused where it does not run, and MPI and UCX by a library without them") {
  baton_transport* transport = nullptr;
  const auto refused = [&](int status, const std::string& library, const char* otherwise) {
    CHECK(transport == nullptr);
    if (status == BATON_UNSUPPORTED) {
      FAILS(status, BATON_UNSUPPORTED,
            {"a library with " + library + ", found one that was built"});
    } else {
      FAILS(status, BATON_INVALID_ARGUMENT, {otherwise});
    }
  };
  refused(baton_mpi_transport(0, &transport), "MPI", "MPI_Init was not called");
  refused(baton_ucx_transport(0, 2, "nowhere", nullptr, &transport), "UCX", "found \"nowhere\"");
  refused(baton_ucx_transport_by_exchange(0, 1, nullptr, nullptr, nullptr, &transport), "UCX",
          "an exchange of addresses, found NULL");
}
