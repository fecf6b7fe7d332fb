#pragma once

#include <string>
#include <vector>

#include "train.h"

namespace demo {

/// A progress bar on stderr that is drawn over itself; on what is no terminal, a line at the end of each epoch's tenth.
class ProgressBar {
 public:
  explicit ProgressBar(std::string name, bool quiet);
  void show(const Progress& progress);
  void done();

 private:
  std::string name_;
  bool quiet_, terminal_;
  double last_drawn_ = 0;
};

/// Rows of cells under a header, columns aligned, the first to the left.
std::string table(const std::vector<std::vector<std::string>>& rows);

/// "1,437".
std::string with_commas(int64_t n);

}  // namespace demo
