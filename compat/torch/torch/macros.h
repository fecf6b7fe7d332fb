#pragma once

#include <iostream>
#include <sstream>

#include <brasa/arg.h>
#include <brasa/error.h>
#include <brasa/export.h>
#include <brasa/nn/pimpl.h>
#include <brasa/profiler.h>
#include <brasa/warning.h>

namespace torch::detail {

template <class... A>
std::string message(const A&... parts) {
  std::ostringstream out;
  static_cast<void>((out << ... << parts));
  return out.str();
}
template <class Kind = ::brasa::Error, class... A>
[[noreturn]] void failed(const char* condition, const A&... parts) {
  std::string text = message(parts...);
  throw Kind(text.empty() ? message("Expected ", condition, " to be true, but got false.") : text);
}

}  // namespace torch::detail

#define TORCH_API BRASA_API
#define TORCH_CUDA_CPP_API BRASA_API
#define C10_API BRASA_API
#define C10_EXPORT BRASA_API
#define C10_UNUSED [[maybe_unused]]
#define C10_LIKELY(expression) (__builtin_expect(static_cast<bool>(expression), 1))
#define C10_UNLIKELY(expression) (__builtin_expect(static_cast<bool>(expression), 0))
#define C10_HOST_DEVICE

#define TORCH_CHECK(condition, ...)                                                   \
  do {                                                                                \
    if (!(condition)) ::torch::detail::failed(#condition __VA_OPT__(, ) __VA_ARGS__); \
  } while (false)
#define TORCH_CHECK_WITH_KIND(Kind, condition, ...)                                                  \
  do {                                                                                               \
    if (!(condition)) ::torch::detail::failed<::brasa::Kind>(#condition __VA_OPT__(, ) __VA_ARGS__); \
  } while (false)
// What they name is seen by Brasa's profiler.
#define TORCH_JOINED(a, b) a##b
#define TORCH_RANGE(name, line) ::brasa::profiler::record_function TORCH_JOINED(torch_range_, line)(name)
#define RECORD_FUNCTION(name, inputs, ...) TORCH_RANGE(name, __LINE__)
#define RECORD_USER_SCOPE(name) TORCH_RANGE(name, __LINE__)
#define C10_THROW_ERROR(Kind, ...) throw ::brasa::Kind(::torch::detail::message(__VA_ARGS__))
#define TORCH_CHECK_INDEX(condition, ...) TORCH_CHECK_WITH_KIND(IndexError, condition, __VA_ARGS__)
#define TORCH_CHECK_VALUE(condition, ...) TORCH_CHECK_WITH_KIND(ValueError, condition, __VA_ARGS__)
#define TORCH_CHECK_TYPE(condition, ...) TORCH_CHECK_WITH_KIND(TypeError, condition, __VA_ARGS__)
#define TORCH_CHECK_LINALG(condition, ...) TORCH_CHECK_WITH_KIND(LinAlgError, condition, __VA_ARGS__)
#define TORCH_CHECK_NOT_IMPLEMENTED(condition, ...) TORCH_CHECK_WITH_KIND(NotImplementedError, condition, __VA_ARGS__)
#define TORCH_CHECK_OP(a, op, b) TORCH_CHECK((a)op(b), "Check failed: " #a " " #op " " #b " (", a, " vs. ", b, "). ")
#define TORCH_CHECK_EQ(a, b) TORCH_CHECK_OP(a, ==, b)
#define TORCH_CHECK_NE(a, b) TORCH_CHECK_OP(a, !=, b)
#define TORCH_CHECK_LT(a, b) TORCH_CHECK_OP(a, <, b)
#define TORCH_CHECK_LE(a, b) TORCH_CHECK_OP(a, <=, b)
#define TORCH_CHECK_GT(a, b) TORCH_CHECK_OP(a, >, b)
#define TORCH_CHECK_GE(a, b) TORCH_CHECK_OP(a, >=, b)
#define TORCH_INTERNAL_ASSERT TORCH_CHECK
#define TORCH_INTERNAL_ASSERT_DEBUG_ONLY TORCH_CHECK
#define AT_ASSERT TORCH_CHECK
#define AT_ASSERTM TORCH_CHECK
#define AT_ERROR(...) throw ::brasa::Error(::torch::detail::message(__VA_ARGS__))
#define TORCH_WARN_WITH(verbatim, ...)                                                                                 \
  ::brasa::Warning::warn({__func__, __FILE__, static_cast<uint32_t>(__LINE__)}, ::torch::detail::message(__VA_ARGS__), \
                         verbatim)
#define TORCH_WARN(...) TORCH_WARN_WITH(false, __VA_ARGS__)
#define TORCH_WARN_ONCE(...)                             \
  do {                                                   \
    static bool warned = false;                          \
    if (!warned || ::brasa::Warning::get_warnAlways()) { \
      warned = true;                                     \
      TORCH_WARN(__VA_ARGS__);                           \
    }                                                    \
  } while (false)

#define TORCH_ARG BRASA_ARG
#define TORCH_MODULE BRASA_MODULE
#define TORCH_MODULE_IMPL(Name, ImplType)                    \
  class Name : public ::brasa::nn::ModuleHolder<ImplType> {  \
   public:                                                   \
    using ::brasa::nn::ModuleHolder<ImplType>::ModuleHolder; \
    using Impl [[maybe_unused]] = ImplType;                  \
  }

#define FORWARD_HAS_DEFAULT_ARGS BRASA_FORWARD_DEFAULTS

#define TORCH_VERSION_MAJOR 2
#define TORCH_VERSION_MINOR 15
#define TORCH_VERSION_PATCH 0
#define TORCH_VERSION "2.15.0"
