#include "execute/script.hpp"

#include <doctest/doctest.h>

#include <string>

#include "support/schedules.hpp"

using namespace baton;
using namespace baton::execute;

namespace {

/// "post 1, local 0, receive 2, await 1": what the script of these steps of rank 0 does.
std::string script(const std::string& steps) {
  const Schedule schedule =
      parse("baton-schedule 1\ncollective all_reduce\nsize 3\ninput 16\noutput 16\nrank 0\n" +
            steps + "\nrank 1\nrank 2\n")[0];
  std::string text;
  for (const ScriptLine& line : script_of(schedule)) {
    constexpr const char* acts[] = {"post ", "await ", "receive ", "send ", "local "};
    text +=
        (text.empty() ? "" : ", ") + (acts[static_cast<int>(line.act)] + std::to_string(line.step));
    if (line.with != ScriptLine::none) text += " with " + std::to_string(line.with);
  }
  return text;
}

}  // namespace

TEST_CASE("a receive that all else needs, or does not need, comes last of what can be done") {
  CHECK(script("send 1 input[0:4]\nrecv 1 scratch[0:4]\n"
               "fold output[0:4] = input[0:4] + scratch[0:4]\nsend 2 output[0:4]") ==
        "post 0, receive 1, local 2, post 3, await 0, await 3");
  // What does not need it goes first, also where it stands behind it.
  CHECK(script("recv 1 output[4:4]\ncopy output[0:4] = input[0:4]\nsend 1 output[0:4]") ==
        "local 1, post 2, receive 0 with 2, await 2");
  // One after the other: the second writes where the first one's sum is made.
  CHECK(script("recv 1 scratch[0:4]\nfold output[0:4] = input[0:4] + scratch[0:4]\n"
               "recv 2 scratch[0:4]\ncopy output[4:4] = scratch[0:4]") ==
        "receive 0, local 1, receive 2, local 3");
}

TEST_CASE("receives of which either may come first are posted, not waited for one by one") {
  CHECK(script("recv 1 output[0:4]\nrecv 2 output[4:4]\nsend 1 input[0:4]") ==
        "post 0, post 1, post 2, await 0, await 1, await 2");
}

TEST_CASE("a receive is posted where a send that comes to its end would let the rank go on") {
  // The copy writes what is being sent, and rank 2 waits for what the copy makes.
  CHECK(script("send 1 output[0:4]\nrecv 2 output[8:4]\ncopy output[0:4] = input[0:4]\n"
               "send 2 output[0:4]") ==
        "post 1, post 0, await 0, local 2, post 3, await 1, await 3");
}

TEST_CASE("the last send goes with the last receive, unless the one needs the other") {
  CHECK(script("send 2 input[0:4]\nsend 1 input[4:4]\nrecv 1 output[0:4]") ==
        "post 0, post 1, receive 2 with 1, await 0, await 1");
  // The receive writes what is sent; a send follows the receive; there is no send.
  CHECK(script("send 1 output[0:4]\nrecv 1 output[0:4]") == "post 0, await 0, receive 1");
  CHECK(script("send 1 input[0:4]\nrecv 2 output[0:4]\nsend 1 output[0:4]") ==
        "post 0, receive 1, post 2, await 0, await 2");
  CHECK(script("recv 2 output[0:4]\ncopy output[4:4] = input[0:4]") == "local 1, receive 0");
  // The first receive may be the answer to the send, which then cannot wait for the second.
  CHECK(script("send 1 input[0:4]\nrecv 1 scratch[0:4]\n"
               "fold output[0:4] = input[0:4] + scratch[0:4]\nrecv 2 scratch[0:4]") ==
        "post 0, receive 1, local 2, receive 3, await 0");
}
