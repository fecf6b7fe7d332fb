#pragma once

#include <memory>
#include <string_view>

#include "compiler/compile.h"
#include "compiler/fusion/fuse.h"
#include "compiler/libraries/library.h"
#include "compiler/libraries/operands.h"
#include "compiler/run/size_program.h"
#include "support/small_vector.h"

namespace brasa::compiler {

struct Portable;

/// The body of a node of control flow, compiled with the sizes that are known outside. What else it assumes of sizes, the whole graph assumes.
class CompiledBody {
 public:
  /// `sizes` says what the body's symbols are outside. `lasting`: inputs that are the same in each step.
  CompiledBody(const ir::Graph& body, const std::vector<ir::Expr>& sizes, std::string_view name,
               const CompilerOptions& options, ir::Facts& facts, const std::vector<size_t>& lasting = {});
  /// What its symbols are where the outer ones are these.
  SmallVector<int64_t, 16> symbols(const int64_t* outer) const;
  const std::vector<SizeProgram>& sizes() const { return sizes_; }
  const Executable* operator->() const { return executable_.get(); }
  /// Instead of an executable, where the options ask for that.
  const Portable& portable() const { return *portable_; }
  const Report& report() const;

 private:
  std::vector<SizeProgram> sizes_;
  std::shared_ptr<Executable> executable_;
  std::shared_ptr<const Portable> portable_;
};

/// What control flow does: a step of a program that runs alone is written from this.
struct Flow {
  /// How a step of a loop sees a tensor: the state that it begins or ends with, an item, or all of it.
  enum class Use : uint8_t { State, Item, Whole };
  struct Tensor {
    Use use;
    size_t position;    // among the group's inputs and outputs
    SizeProgram bytes;  // of what a step sees
  };
  enum class Kind : uint8_t { Branch, Loop, While } kind;
  std::vector<CompiledBody> bodies;       // yes, no; step; go_on, step
  std::vector<Tensor> operands, results;  // of the bodies
  size_t predicate = 0;                   // Branch: its position
  SizeProgram steps = {};                 // Loop
  bool reverse = false;
};

/// A call of a node of control flow: bodies run between the memory of the node's operands and that of its results.
class BodyCall : public DeviceCall {
 public:
  const Report* report() const override { return &report_; }
  const Flow& flow() const { return flow_; }

 protected:
  explicit BodyCall(Flow::Kind kind) { flow_.kind = kind; }
  void add_body(CompiledBody body);

  Flow flow_ = {};

 private:
  Report report_;
};

/// Bytes of a body's value, by sizes that are known outside.
SizeProgram bytes_outside(ir::Value v, const std::vector<ir::Expr>& sizes);

/// Of a group that is one node of control flow.
template <class Call, class View>
std::unique_ptr<DeviceCall> prepare_bodies(const Group& g, const CompilerOptions& options, ir::Facts& facts) {
  return std::make_unique<Call>(g, View(*g.graph->outputs()[0].value.node), options, facts);
}

}  // namespace brasa::compiler
