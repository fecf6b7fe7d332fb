#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include <brasa/brasa.h>

#include "fuzz/program.h"

namespace brasa::fuzz {

/// What the functions of a program share.
struct World {
  DType dtype = kFloat64;
  std::vector<Tensor> parameters;
  Tensor state;                  // that functions write
  double number = 0;             // of the call
  std::vector<Tensor> retained;  // that keep their gradients
  std::vector<double> noted;     // by hooks and breaks
  /// Calls another function of the program.
  std::function<Tensor(int function, const Tensor& a, const Tensor& b)> call;
};

/// Gives a value, or an undefined tensor where the operands do not suit it or it only writes.
using Operator = std::function<Tensor(World& world, const Tensor& a, const Tensor& b, const Instruction& i)>;
/// By name. All values have two dimensions.
const std::map<std::string, Operator>& operators();

}  // namespace brasa::fuzz
