#include "io/c_errors.h"

#include "support/error.h"

namespace brasa::io {

bool CErrors::returns(void (*f)(void*), void* context) {
  if (setjmp(back_) != 0) return false;
  f(context);
  return true;
}

void CErrors::raise(std::string_view text) {
  text_[text.copy(text_, sizeof text_ - 1)] = '\0';
  std::longjmp(back_, 1);
}

void CErrors::fail_with_text() const { fail(str(source_, ": ", text_)); }

}  // namespace brasa::io
