#pragma once

#include <memory>
#include <string_view>

#include "compiler/compile.h"
#include "compiler/run/size_program.h"
#include "support/small_vector.h"

namespace brasa::compiler {

/// The body of a node of control flow, compiled with the sizes that are known outside. What else it assumes of sizes, the whole graph assumes.
class CompiledBody {
 public:
  /// `sizes` says what the body's symbols are outside.
  CompiledBody(const ir::Graph& body, const std::vector<ir::Expr>& sizes, std::string_view name,
               const CompilerOptions& options, ir::Facts& facts);
  /// What its symbols are where the outer ones are these.
  SmallVector<int64_t, 16> symbols(const int64_t* outer) const;
  const Executable& operator*() const { return *executable_; }
  const Executable* operator->() const { return executable_.get(); }

 private:
  std::vector<SizeProgram> sizes_;
  std::shared_ptr<Executable> executable_;
};

}  // namespace brasa::compiler
