#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "ir/graph.h"

// Primitives that functions of libraries compute, whole tensors to whole tensors.
namespace brasa::compiler {

/// An operand or result in contiguous memory of the host.
struct LibraryTensor {
  void* data = nullptr;
  DType dtype = DType::Float32;
  std::span<const int64_t> sizes;
};

struct LibraryCall {
  /// The primitive's arguments; operands stand in `inputs` instead, in order, lists one after the other.
  const ir::Args& args;
  std::span<const LibraryTensor> inputs, outputs;
  const int64_t* symbols;

  /// An int or SymInt argument.
  int64_t integer(size_t arg) const;
};

/// One way to compute a primitive.
struct Implementation {
  std::string_view library;    // as runtime::Properties::libraries has it
  std::string_view name;       // in reports
  std::string_view primitive;  // "prim::sort"
  /// Which calls it takes, by dtypes, shapes and arguments; null: all.
  bool (*supports)(const ir::Node& n) = nullptr;
  /// May run on several threads at once, on different memory. An error of the user's is a brasa::Error.
  void (*run)(const LibraryCall& call) = nullptr;
};

/// What some libraries compute, in the order in which they are tried: by library, then as table.cpp lists them.
class Libraries {
 public:
  /// brasa::InternalError for one that the table has not.
  explicit Libraries(std::span<const std::string_view> names);
  /// The first that takes this node; null where code is generated for it.
  const Implementation* find(const ir::Node& n) const;

 private:
  std::vector<std::pair<const ir::Op*, const Implementation*>> rows_;
};

}  // namespace brasa::compiler
