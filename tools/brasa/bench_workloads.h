#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace brasa::tool {

/// A model with its input, ready to be run again and again.
struct Prepared {
  std::function<void()> run;
  int64_t parameters = 0;
  std::shared_ptr<void> keep;  // what `run` refers to
};

struct Workload {
  std::string name, what;
  /// `mode` is "eager" or one of compile's.
  std::function<Prepared(const std::string& mode)> prepare;
};

const std::vector<Workload>& workloads();
/// Does the name stand for a file with an exported program?
inline bool is_archive(const std::string& name) { return name.ends_with(".pt2"); }
/// An exported program, on inputs of a file or drawn ones (see inputs_from).
Workload archive(const std::string& path, const std::string& inputs);
Prepared hundred_operators();
Prepared forty_operators_with_numbers();

}  // namespace brasa::tool
