#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "compiler/compile.h"
#include "compiler/passes/passes.h"

namespace brasa::compiler {

/// Runs every step of the pipeline: notes its time, shows what it made where BRASA_LOGS names its topic ('(unchanged)' where
/// that is what it was), and in builds with assertions checks that a graph is legal (ir/legality.h).
class PassRunner {
 public:
  explicit PassRunner(Report& report) : report_(report) {}
  /// Whether BRASA_DISABLE_PASSES names it.
  /// Whether BRASA_LOGS asks for what passes do.
  static bool shows_passes();
  static bool switched_off(std::string_view name);

  /// A pass over graphs, of topic "graph"; left out where it is optional and BRASA_DISABLE_PASSES names it.
  void run(const GraphPass& pass, Primitives& p, const PassContext& context);
  /// A step that makes a graph of primitives.
  void run(std::string_view name, Primitives& p, const std::function<void()>& step);
  /// Another step. `text` is of what the step made, once it has.
  void run(std::string_view name, std::string_view topic, const std::function<void()>& step,
           const std::function<std::string()>& text = nullptr);

 private:
  Report& report_;
};

}  // namespace brasa::compiler
