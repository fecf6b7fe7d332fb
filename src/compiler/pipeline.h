#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/compile.h"

namespace brasa::compiler {

/// Runs one pass over a graph: notes its time, dumps its result for BRASA_LOGS=graph (or '(unchanged)'), and leaves it out where
/// BRASA_DISABLE_PASSES names it.
class PassRunner {
 public:
  explicit PassRunner(Report& report);
  using Pass = std::function<std::unique_ptr<ir::Graph>(const ir::Graph&)>;
  /// `needed` passes bring a graph into a form that later ones require, and cannot be switched off.
  void run(std::string_view name, std::unique_ptr<ir::Graph>& graph, bool needed, const Pass& pass);
  /// A step whose result is no graph.
  void time(std::string_view name, const std::function<void()>& step);

 private:
  Report& report_;
  bool log_;
  std::string disabled_;
};

/// The loops of all distinct kernels that a graph becomes, without compiling them.
std::vector<std::string> kernel_texts(const ir::Graph& graph, ir::Facts& facts, const CompileOptions& options);

/// From a graph of operators or primitives to kernels: every step in order.
std::shared_ptr<Executable> run_pipeline(const ir::Graph& graph, ir::Facts& facts, const CompileOptions& options);

}  // namespace brasa::compiler
