#include <unistd.h>

#include <cstdio>

#include <brasa/progress.h>

#include "support/str.h"

namespace brasa {

ProgressBar::ProgressBar(size_t steps, bool lines)
    : steps_(steps), terminal_(::isatty(STDERR_FILENO) == 1), lines_(lines) {}

ProgressBar::~ProgressBar() {
  if (terminal_ && done_ > 0) std::fputs("\r\x1b[K", stderr);
}

void ProgressBar::next(const std::string& what) {
  constexpr size_t kBar = 28;
  size_t full = steps_ ? kBar * done_ / steps_ : 0;
  ++done_;
  if (!terminal_ && !lines_) return;
  std::string line =
      str("[", std::string(full, '#'), std::string(kBar - full, '.'), "] ", done_, "/", steps_, "  ", what);
  std::fprintf(stderr, "%s%s%s", terminal_ ? "\r" : "", line.c_str(), terminal_ ? "\x1b[K" : "\n");
  std::fflush(stderr);
}

}  // namespace brasa
