#pragma once
/// The whole public interface but the opt-in headers (baton/mpi.hpp …).

#include "baton/communicator.hpp"
#include "baton/data.hpp"
#include "baton/device.hpp"
#include "baton/error.hpp"
#include "baton/explain.hpp"
#include "baton/memory.hpp"
#include "baton/options.hpp"
#include "baton/schedule.hpp"
#include "baton/schedule/passes.hpp"
#include "baton/schedule/text.hpp"
#include "baton/simulate.hpp"
#include "baton/stream.hpp"
#include "baton/thread.hpp"
#include "baton/transport.hpp"
#include "baton/types.hpp"
#include "baton/verify.hpp"
