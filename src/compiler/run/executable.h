#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ir/facts.h"
#include "ir/graph.h"

namespace brasa::runtime {
class Device;
}

namespace brasa::compiler {

/// Memory of a device that a run reads or writes, owned by the caller: strides in elements.
struct Operand {
  void* data = nullptr;
  DType dtype = DType::Float32;
  std::span<const int64_t> sizes, strides;
  /// Of a lasting input: equal numbers say that its elements are the same; 0 says nothing.
  uint64_t content = 0;
  /// Of a lasting input that the run writes: that of what it leaves there.
  uint64_t content_after = 0;
};

/// A number for Operand::content that is not any other one.
uint64_t new_content();

/// A graph made ready to run. Immutable; runs may overlap on several threads.
///
/// `run` takes what the graph's symbols are in this call, by id (program::Symbols finds them), and operands: inputs with the strides
/// that the graph's inputs state (contiguous where they state none), and one for each output of the graph that is neither a check nor
/// written into an input (Output::into), in order, contiguous.
class Executable {
 public:
  virtual ~Executable();

  /// Types of the outputs that `run` takes operands for.
  const std::vector<ir::Type>& output_types() const { return output_types_; }
  /// Inputs of which `run` wants to know the content.
  virtual std::span<const uint32_t> lasting() const { return {}; }
  /// Code that was made quickly at first is optimized, soon where the caller does not wait for it. Whether all of it is.
  virtual bool optimize(bool /*wait*/) const { return true; }
  static int64_t evaluate(ir::Expr e, const int64_t* symbols);

  /// brasa::Error (see fail_checked) if a check of the graph fails.
  virtual void run(const int64_t* symbols, std::span<const Operand> inputs, std::span<const Operand> outputs) const = 0;

 protected:
  explicit Executable(const ir::Graph& graph);
  /// fail_checked with the message of a check, its symbols replaced by their values.
  [[noreturn]] void fail_check(const std::string& message, const int64_t* symbols) const;
  /// The same message, and the operator's name, for a check that fails later.
  std::string check_text(const std::string& message, const int64_t* symbols) const;
  size_t symbol_count() const { return symbol_count_; }

 private:
  std::string substituted(const std::string& message, const int64_t* symbols) const;
  std::string name_;
  size_t symbol_count_;
  std::vector<ir::Type> output_types_;
};

/// Runs a graph of operators or primitives in the reference interpreter, on the host: operands of another device (null: the host) are
/// copied there and back, but those that come by value.
std::shared_ptr<Executable> interpret(const ir::Graph& graph, runtime::Device* device = nullptr);

}  // namespace brasa::compiler
