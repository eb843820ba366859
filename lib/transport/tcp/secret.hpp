#pragma once
/// The secret that the processes of a job share, and how one shows another that it knows it.

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

namespace baton::tcp {

using Bytes = std::vector<std::byte>;
using Digest = std::array<std::byte, 32>;
using Parts = std::initializer_list<std::span<const std::byte>>;

/// Of the parts, one after the other: FIPS 180-4.
Digest sha256(Parts parts);
/// RFC 2104, with SHA-256.
Digest hmac(std::span<const std::byte> key, Parts parts);
/// In a time that does not depend on the contents.
bool equal(const Digest& a, const Digest& b);

/// 32 bytes that nobody foresees. Throws Error(transport).
Digest random_bytes();

/// The key of all proofs at a place: BATON_SECRET, behind the number of the place. Without the
/// variable, whoever knows the number belongs to the job.
Bytes proof_key(std::uint64_t place);
/// Whether BATON_SECRET is set and not empty.
bool has_secret();

}  // namespace baton::tcp
