#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/arg.h"

namespace brasa::ir {

/// The type of a parameter as PyTorch's schemas write it.
enum class ParamType : uint8_t {
  Tensor,
  Scalar,
  Int,
  Float,
  Bool,
  Str,
  DType,
  Layout,
  Device,
  MemoryFormat,
  Generator,
  Graph,  // of a primitive: an ir::Body
};

/// How a graph takes a parameter that is a number.
enum class NumberUse : uint8_t {
  Known,  // the graph is made for one value
  Input,  // an input without dimensions
  Size,   // an integer of which sizes, offsets and counts are made: a symbol
};

struct Param {
  std::string name;
  ParamType type = ParamType::Tensor;
  bool list = false;            // Tensor[], int[2]
  int list_size = 0;            // the 2 of int[2]: a single number stands for a list of that many
  bool optional = false;        // Tensor?, int[]?
  bool optional_items = false;  // Tensor?[]
  bool symbolic = false;        // SymInt, SymInt[]
  bool keyword_only = false;
  bool mutated = false;  // Tensor(a!)
  bool aliased = false;  // Tensor(a)
  NumberUse use = NumberUse::Known;
  /// Numbers that have a graph of their own, although others of this parameter share one.
  std::vector<double> special;
  std::optional<Arg> default_value;
};

struct Return {
  ParamType type = ParamType::Tensor;
  bool list = false;
  bool mutated = false;
  bool aliased = false;
  std::string name;
};

/// "aten::max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)".
struct Schema {
  std::string name;      // "aten::max.dim"
  std::string base;      // "max": the C++ name
  std::string overload;  // "dim" or ""
  std::vector<Param> params;
  std::vector<Return> returns;

  /// Position of the parameter, or -1.
  int index_of(std::string_view param) const;
};

/// Reads PyTorch's schema language; brasa::InternalError on a malformed one.
Schema parse_schema(std::string_view text);
/// Writes it back in PyTorch's form.
void append_to(std::string& out, const Schema& schema);

}  // namespace brasa::ir
