#pragma once

#include <cstddef>

namespace brasa::test {

/// The stack of a thread that has little. Sanitizers make frames several times as large.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr size_t kSmallStack = size_t{4} << 20;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr size_t kSmallStack = size_t{4} << 20;
#else
constexpr size_t kSmallStack = size_t{512} << 10;
#endif
#else
constexpr size_t kSmallStack = size_t{512} << 10;
#endif

}  // namespace brasa::test
