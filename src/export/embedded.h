#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace brasa::exporting {

/// A kind of processors that programs can be exported for: what of alone/ goes into them, as this library was built with it.
struct Processors {
  std::string_view name;
  std::vector<std::string> targets;  // of the code generator: level 0, level 1, …
  std::string_view compiler;         // that links for them
  std::string_view runtime, main;    // objects; empty where this library was built without a compiler for them
};
/// Those that have the target; brasa::Error if none has, or if it was built without them.
const Processors& processors_with(const std::string& target);

/// The text of alone/program.h.
std::string_view program_header();

}  // namespace brasa::exporting
