#pragma once

#include "common/command_line.hpp"

/// Each folder adds its commands to the program's command line.
namespace baton::cli {

namespace run {
void add_run(CommandLine& program);
}
namespace bench {
void add_bench(CommandLine& program);
}
namespace simulate {
void add_simulate(CommandLine& program);
}
namespace calibrate {
void add_calibrate(CommandLine& program);
}
namespace tune {
void add_tune(CommandLine& program);
}
namespace status {
void add_status(CommandLine& program);
}
namespace timeline {
void add_timeline(CommandLine& program);
}
namespace verify {
void add_list(CommandLine& program);
void add_verify(CommandLine& program);
void add_explain(CommandLine& program);
}  // namespace verify

}  // namespace baton::cli
