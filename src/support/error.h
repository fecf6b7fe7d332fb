#pragma once

#include <brasa/error.h>

#include "support/str.h"

namespace brasa {

[[noreturn]] void fail(std::string message);
[[noreturn]] void fail_index(std::string message);
[[noreturn]] void fail_internal(std::string message);

}  // namespace brasa

// A condition that the caller must meet: `BRASA_CHECK(n > 0, "arange: step must be positive, got ", n)`.
#define BRASA_CHECK(condition, ...)             \
  do {                                          \
    if (!(condition)) [[unlikely]]              \
      ::brasa::fail(::brasa::str(__VA_ARGS__)); \
  } while (0)

// The same as an error of that kind.
#define BRASA_CHECK_AS(Kind, condition, ...)          \
  do {                                                \
    if (!(condition)) [[unlikely]]                    \
      throw ::brasa::Kind(::brasa::str(__VA_ARGS__)); \
  } while (0)

// A condition that Brasa itself must meet.
#define BRASA_ASSERT(condition, ...)                                                                                 \
  do {                                                                                                               \
    if (!(condition)) [[unlikely]]                                                                                   \
      ::brasa::fail_internal(::brasa::str(__FILE__, ":", __LINE__, ": " #condition " " __VA_OPT__(, ) __VA_ARGS__)); \
  } while (0)
