#pragma once

#include <gtest/gtest.h>
#include <pthread.h>

#include <cstddef>
#include <functional>

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

/// Runs f on such a thread, as other programs have them.
inline void on_small_stack(const std::function<void()>& f) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kSmallStack);
  pthread_t thread;
  auto run = [](void* p) -> void* { return (*static_cast<const std::function<void()>*>(p))(), nullptr; };
  ASSERT_EQ(pthread_create(&thread, &attributes, run, const_cast<std::function<void()>*>(&f)), 0);
  pthread_join(thread, nullptr);
}

}  // namespace brasa::test
