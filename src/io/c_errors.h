#pragma once

#include <csetjmp>
#include <string>
#include <string_view>

namespace brasa::io {

/// Errors of C libraries whose functions must not return after one. Their error function calls `raise`, which leaves the library by longjmp;
/// `run` makes a brasa::Error of it. What is between the two has no destructors.
class CErrors {
 public:
  explicit CErrors(std::string source) : source_(std::move(source)) {}

  template <class F>
  void run(F f) {
    if (!returns([](void* context) { (*static_cast<F*>(context))(); }, &f)) fail_with_text();
  }
  [[noreturn]] void raise(std::string_view text);

 private:
  bool returns(void (*f)(void*), void* context);
  [[noreturn]] void fail_with_text() const;

  std::string source_;
  char text_[256] = "";  // no string: the memory for one may be what is missing
  std::jmp_buf back_;
};

}  // namespace brasa::io
