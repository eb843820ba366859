#include <new>

#include "baton/error.hpp"
#include "handles.hpp"

namespace baton::c {
namespace {

/// A thread's latest error.
struct Latest {
  int status = BATON_OK;
  Error error{ErrorCode::invalid_argument, ""};
};
thread_local Latest latest;

int status_of(ErrorCode code) { return 1 + static_cast<int>(code); }
static_assert(BATON_INVALID_ARGUMENT == 1 + static_cast<int>(ErrorCode::invalid_argument));
static_assert(BATON_DEVICE == 1 + static_cast<int>(ErrorCode::device));

int keep(int status, const Error& error) {
  latest.error = error;
  latest.status = status;
  return status;
}

}  // namespace

int failed() noexcept {
  try {
    throw;
  } catch (const Error& error) {
    return keep(status_of(error.code), error);
  } catch (const std::bad_alloc&) {
    return keep(BATON_MEMORY, {ErrorCode::memory, "expected enough memory, found too little"});
  } catch (const std::exception& error) {
    return keep(BATON_FAILED, {ErrorCode::unsupported, error.what()});
  } catch (...) {
    return keep(BATON_FAILED, {ErrorCode::unsupported,
                               "expected no exception, found one that is no std::exception"});
  }
}

void fail_returned(int status, const std::string& who) {
  if (status != latest.status)
    throw Failed(fmt::format("expected {} to return 0, found {}", who, status));
  if (status == BATON_FAILED) throw Failed(latest.error.what());
  throw Error(latest.error);
}

}  // namespace baton::c

using namespace baton::c;

const char* baton_last_error() { return latest.error.what(); }

int baton_last_error_details(baton_error* error) {
  return guarded([&] {
    const baton::Error& last = latest.error;
    fill(error,
         {0, latest.status, last.rank, last.peer, last.step, last.backend_code, last.what(),
          last.operation.c_str(), last.backend_text.c_str()},
         "baton_error");
  });
}

const char* baton_status_name(int status) {
  if (status == BATON_OK) return "ok";
  if (status == BATON_FAILED) return "failed";
  if (status < BATON_OK || status > BATON_FAILED) return "unknown";
  return name(static_cast<baton::ErrorCode>(status - 1)).data();
}
