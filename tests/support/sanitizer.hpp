#pragma once
/// UNDER_SANITIZER is defined where the address or thread sanitizer checks this code.

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define UNDER_SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define UNDER_SANITIZER 1
#endif

namespace support {

/// For tests whose many cases take the same paths: under a sanitizer they do fewer of them.
#ifdef UNDER_SANITIZER
constexpr bool under_sanitizer = true;
#else
constexpr bool under_sanitizer = false;
#endif

}  // namespace support
