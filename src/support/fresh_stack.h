#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>

namespace brasa {

/// Runs f on this thread, on a stack of its own as large as a thread's usual one. What f throws is thrown here.
void on_fresh_stack(const std::function<void()>& f);
/// Whether fewer bytes than these are left of the stack that this runs on.
bool stack_is_low(size_t bytes);

/// Calls f, on a fresh stack where this one is running out: each step of a recursion whose depth the user's program decides goes through
/// it.
template <class F>
std::invoke_result_t<F> with_room(F&& f, size_t bytes = size_t{128} << 10) {
  using R = std::invoke_result_t<F>;
  if (!stack_is_low(bytes)) [[likely]]
    return f();
  if constexpr (std::is_void_v<R>) {
    on_fresh_stack([&] { f(); });
  } else {
    std::optional<R> out;
    on_fresh_stack([&] { out.emplace(f()); });
    return std::move(*out);
  }
}

}  // namespace brasa
