#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/run/executable.h"
#include "ir/text.h"
#include "program/conditions.h"
#include "support/small_vector.h"

namespace brasa::program {

/// The one binding of a graph's symbols: each is read from a size or a stride of an input.
class Symbols {
 public:
  Symbols() = default;
  explicit Symbols(const ir::Graph& graph);
  /// Of values that `bind` fills, and runs take.
  size_t count() const { return count_; }
  /// `symbols[id]` from operands that are as the graph's inputs.
  void bind(std::span<const compiler::Operand> inputs, int64_t* symbols) const;

 private:
  struct Source {
    uint32_t symbol, input, dim;
    bool stride;
  };
  std::vector<Source> sources_;
  size_t count_ = 0;
};

/// What the symbols are in one call, by id.
using SymbolValues = SmallVector<int64_t, 32>;

/// Where a result of a call comes from: an output of the graph (fresh memory, or the input that it is written into), an input as it
/// is, or nowhere.
struct Result {
  enum class From : uint8_t { Output, Input, Nothing } from = From::Nothing;
  uint32_t index = 0;  // among the graph's outputs, or its inputs
  friend bool operator==(const Result& a, const Result& b) { return a.from == b.from && a.index == b.index; }
};

/// A graph that can be called. Its inputs say what operands must be (dtype, sizes, strides, number or tensor), its outputs which inputs
/// are written; it is right on its device where its conditions hold.
struct Program {
  Program() = default;
  /// Without `results`, the outputs that are no checks are the results.
  Program(std::unique_ptr<ir::Graph> graph, runtime::Device& device, std::vector<Result> results);
  Program(std::unique_ptr<ir::Graph> graph, runtime::Device& device);

  /// Fills `values` with what the symbols are for these operands.
  void bind(std::span<const compiler::Operand> inputs, SymbolValues& values) const {
    values.resize(symbols.count());
    symbols.bind(inputs, values.data());
  }

  std::unique_ptr<const ir::Graph> graph;
  runtime::Device* device = nullptr;
  std::vector<Result> results;
  Conditions conditions;
  Symbols symbols;
  std::vector<bool> reads;  // by input: the outputs depend on its elements, and not only on its sizes
};

/// As ir::print, with the conditions in the graph and a line in front:
///
///     program on cuda:0 gives output 0, input 2, nothing
std::string print(const Program& program);
/// brasa::Error with the reason on text that `print` would not write, and for a device that is not there.
Program parse(std::string_view text, const ir::OpFinder& find);

}  // namespace brasa::program
