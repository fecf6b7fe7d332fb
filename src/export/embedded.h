#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace brasa::exporting {

/// What a program has code for: it takes the highest level that there is where it runs.
struct Level {
  std::string target;  // as users name it
  int level;
  std::string code = target;  // for the compiler
};
/// A kind of processors that programs can be exported for: what of alone/ goes into them, as this library was built with it.
struct Processors {
  std::string_view name;
  std::vector<Level> levels;
  std::string_view compiler;  // that links for them
  // Objects, empty where this library was built without a compiler for them: the runtime of programs that call nothing, of others, and `main`.
  std::string_view runtime, calling, main;
  bool gpu = false;  // kernels are modules of the driver's (alone/cuda.h)
  const Level& level(const std::string& target) const;
};
/// Those that have the target; brasa::Error if none has, or if it was built without them.
const Processors& processors_with(const std::string& target);

/// The text of alone/program.h.
std::string_view program_header();

}  // namespace brasa::exporting
