// Communicators, messages, requests and plans.

#include <algorithm>
#include <chrono>
#include <cmath>

#include "handles.hpp"

using namespace baton;
using namespace baton::c;

int baton_communicator_create(baton_transport* transport, const baton_options* options,
                              baton_communicator** communicator) {
  const std::unique_ptr<baton_transport> owned(transport);
  return made(communicator, [&] {
    given(transport, "a transport");
    return Communicator(std::move(transport->transport), options_of(options));
  });
}
void baton_communicator_destroy(baton_communicator* communicator) { delete communicator; }

int baton_rank(const baton_communicator* communicator) {
  return communicator == nullptr ? -1 : communicator->communicator.rank();
}
int baton_size(const baton_communicator* communicator) {
  return communicator == nullptr ? -1 : communicator->communicator.size();
}

int baton_set_name(baton_communicator* communicator, const char* name) {
  return guarded([&] { given(communicator).set_name(&given(name, "a name")); });
}

int baton_split(baton_communicator* communicator, int color, int key, baton_communicator** part) {
  return guarded([&] {
    given(part, "an address for the handle") = nullptr;
    Communicator made = given(communicator).split(color, key);
    if (made.valid()) *part = new baton_communicator{std::move(made)};
  });
}

int baton_shrink(baton_communicator* communicator, double seconds, baton_communicator** survivors) {
  return guarded([&] {
    given(survivors, "an address for the handle") = nullptr;
    constexpr double most = 1e9;
    const auto patience = std::chrono::milliseconds(
        seconds > 0 ? std::llround(std::ceil(std::min(seconds, most) * 1000)) : 0);
    *survivors = new baton_communicator{given(communicator).shrink(patience)};
  });
}

int baton_send(baton_communicator* communicator, const void* data, int64_t count, int type,
               int peer, int tag) {
  return guarded(
      [&] { given(communicator).send(ConstData(data, count, datatype(type)), peer, tag); });
}
int baton_recv(baton_communicator* communicator, void* data, int64_t count, int type, int peer,
               int tag) {
  return guarded([&] { given(communicator).recv(Data(data, count, datatype(type)), peer, tag); });
}
int baton_start_send(baton_communicator* communicator, const void* data, int64_t count, int type,
                     int peer, int tag, baton_request** request) {
  return made(request, [&] {
    return given(communicator).start_send(ConstData(data, count, datatype(type)), peer, tag);
  });
}
int baton_start_recv(baton_communicator* communicator, void* data, int64_t count, int type,
                     int peer, int tag, baton_request** request) {
  return made(request, [&] {
    return given(communicator).start_recv(Data(data, count, datatype(type)), peer, tag);
  });
}

int baton_progress(baton_communicator* communicator) {
  return guarded([&] { given(communicator).progress(); });
}

namespace {

/// use(request), and destroys the request if it has ended.
template <class F>
int end_if(baton_request** request, const F& use) {
  bool ended = true;  // after an error, too
  const int status = guarded([&] {
    if (given(request, "an address of a request") != nullptr) ended = use((*request)->request);
  });
  if (request != nullptr && ended) delete std::exchange(*request, nullptr);
  return status;
}

}  // namespace

int baton_test(baton_request** request, int* done) {
  if (const int status = guarded([&] { given(done, "an address for done") = 0; })) return status;
  const int status = end_if(request, [](Request& own) { return own.test(); });
  if (status == BATON_OK) *done = *request == nullptr;
  return status;
}
int baton_wait(baton_request** request) {
  return end_if(request, [](Request& own) {
    own.wait();
    return true;
  });
}

int baton_plan_run(baton_plan* plan) {
  return guarded([&] { given(plan, "a plan").call.run(); });
}
int baton_plan_start(baton_plan* plan, baton_request** request) {
  return made(request, [&] { return given(plan, "a plan").call.start(); });
}
int baton_plan_choice(const baton_plan* plan, char* text, size_t room, size_t* length) {
  return guarded([&] {
    const Choice& choice = given(plan, "a plan").choice;
    give_text(fmt::format("{}:{}", choice.algorithm, choice.segment.value_or(0)), text, room,
              length);
  });
}
int baton_plan_traffic(const baton_plan* plan, int64_t* messages, int64_t* bytes) {
  return guarded([&] {
    const Traffic& traffic = given(plan, "a plan").traffic;
    if (messages != nullptr) *messages = traffic.messages;
    if (bytes != nullptr) *bytes = traffic.bytes;
  });
}
void baton_plan_destroy(baton_plan* plan) { delete plan; }
