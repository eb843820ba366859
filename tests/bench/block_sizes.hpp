#pragma once
/// The sizes of the block that benchmarks time.

#include <CLI/CLI.hpp>
#include <cstdint>

namespace bench {

struct BlockSizes {
  std::int64_t batch = 4, seq = 512, d_model = 1024, heads = 16, d_ff = 4096;

  void add_options(CLI::App& app) {
    app.add_option("--batch", batch);
    app.add_option("--seq", seq);
    app.add_option("--d-model", d_model);
    app.add_option("--heads", heads);
    app.add_option("--d-ff", d_ff);
  }
};

}  // namespace bench
