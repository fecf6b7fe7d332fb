#pragma once

#include <cstddef>
#include <string>

#include <brasa/export.h>

namespace brasa {

/// How far long work has come, on the error stream: drawn over itself on a terminal.
class BRASA_API ProgressBar {
 public:
  /// Of so many steps. `lines`: where there is no terminal, a line for each; else nothing.
  ProgressBar(size_t steps, bool lines);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// A step that is left out.
  void skip() { ++done_; }
  /// The next step begins, with what a person may call it.
  void next(const std::string& what);

 private:
  size_t steps_, done_ = 0;
  bool terminal_, lines_;
};

}  // namespace brasa
