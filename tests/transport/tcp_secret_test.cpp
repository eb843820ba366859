#include "transport/tcp/secret.hpp"

#include <doctest/doctest.h>

#include <string>
#include <string_view>

using namespace baton::tcp;

namespace {

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

std::string hex(const Digest& digest) {
  std::string text;
  for (const std::byte byte : digest) {
    constexpr std::string_view digits = "0123456789abcdef";
    text += digits[std::to_integer<std::size_t>(byte) / 16];
    text += digits[std::to_integer<std::size_t>(byte) % 16];
  }
  return text;
}

}  // namespace

TEST_CASE("SHA-256 of NIST's examples, FIPS 180-4") {
  CHECK(hex(sha256({})) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(hex(sha256({bytes("abc")})) ==
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(
      hex(sha256({bytes("abcdbcdecdefdefgefghfghighijhijk"), bytes("ijkljklmklmnlmnomnopnopq")})) ==
      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  const std::string many(1'000'000, 'a');
  CHECK(hex(sha256({bytes(many)})) ==
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("HMAC of RFC 4231's examples") {
  CHECK(hex(hmac(bytes(std::string(20, '\x0b')), {bytes("Hi "), bytes("There")})) ==
        "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  CHECK(hex(hmac(bytes("Jefe"), {bytes("what do ya want for nothing?")})) ==
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  CHECK(hex(hmac(bytes(std::string(20, '\xaa')), {bytes(std::string(50, '\xdd'))})) ==
        "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
  CHECK(hex(hmac(bytes(std::string(131, '\xaa')),
                 {bytes("Test Using Larger Than Block-Size Key - Hash Key First")})) ==
        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST_CASE("digests that differ in any byte are not equal") {
  const Digest digest = sha256({});
  CHECK(equal(digest, digest));
  for (std::size_t i = 0; i < digest.size(); ++i) {
    Digest other = digest;
    other[i] ^= std::byte{1};
    CHECK_FALSE(equal(digest, other));
  }
}

TEST_CASE("random bytes differ, and so do the keys of places") {
  CHECK_FALSE(equal(random_bytes(), random_bytes()));
  CHECK(proof_key(1) != proof_key(2));
}
