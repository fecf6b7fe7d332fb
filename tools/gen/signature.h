#pragma once

#include <string>
#include <vector>

#include "ops/table.h"

namespace brasa::gen {

/// One parameter of a generated function.
struct Parameter {
  std::string type;  // "const Tensor&"
  std::string name;
  std::string default_value;  // "" if it must be given
  std::string argument;       // the expressions that become CallArgs, in the schema's order
};

inline bool is_options(const Parameter& p) { return p.type == "const TensorOptions&"; }

enum class Result { Tensor, Tuple, List };

/// A row as a C++ function.
struct Signature {
  size_t index = 0;  // the row's position in the table
  const ops::Row* row = nullptr;
  std::string name;
  std::vector<Parameter> params;
  int self = -1;  // the parameter that a method leaves out
  Result result = Result::Tensor;
  size_t results = 1;
  bool options = false;  // takes TensorOptions, whose requires_grad the result gets
  /// <brasa/tensor.h> and <brasa/factories.h> declare it: only what writes into tensors is generated.
  bool by_hand = false;
  bool in_place = false;  // has the form name_
  bool has_out = false;   // has the form name_out; that of a list takes a list
};

/// Those rows of the table that become C++ functions, with defaults taken away where overloads would be ambiguous.
std::vector<Signature> signatures(const ops::Table& table);
/// Of those the ones with a form name_out, without a factory's options, which the tensors that are written decide.
std::vector<Signature> out_signatures(const std::vector<Signature>& all);

}  // namespace brasa::gen
