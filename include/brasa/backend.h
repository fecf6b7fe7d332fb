#pragma once

#include <functional>
#include <string>
#include <vector>

#include <brasa/compile.h>

namespace brasa {

/// A graph of operators that a compiled function recorded. Lives as long as the backend is asked.
class BRASA_API CapturedGraph {
 public:
  struct Impl;
  explicit CapturedGraph(Impl& impl) : impl_(impl) {}
  CapturedGraph(const CapturedGraph&) = delete;
  CapturedGraph& operator=(const CapturedGraph&) = delete;

  /// The graph as `explain` shows it: inputs with dtypes and sizes, one operator a line, the outputs.
  std::string text() const;
  /// Names in order: "aten::gelu".
  std::vector<std::string> operators() const;
  size_t input_count() const;
  size_t output_count() const;
  /// Whether sizes are symbols. A backend that has to know them throws, and is asked again with constant ones.
  bool symbolic() const;
  const CompileOptions& options() const;
  /// What another backend makes of it: "inductor", "eager", … ; Error if there is none of this name.
  GraphFunction compile(const std::string& backend = "inductor") const;

 private:
  Impl& impl_;
};

/// From now on CompileOptions::backend may be `name`; replaces one of the same name. Error for the names of Brasa's own backends.
///
///     register_backend("noisy", [](const CapturedGraph& graph) {
///       std::cout << graph.text();
///       return graph.compile("inductor");
///     });
BRASA_API void register_backend(const std::string& name, Backend backend);

}  // namespace brasa
