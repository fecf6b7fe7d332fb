#pragma once

#include <brasa/autograd.h>
#include <brasa/nn.h>

#include <ostream>
#include <string>

#include "situations.h"

namespace brasa {

/// What a user does with compiled functions: a program that sees the same whether they are compiled or not.
struct UserProgram {
  const char* name;
  void (*run)(const Wrap& compile, Seen& seen);
};
inline void PrintTo(const UserProgram& p, std::ostream* out) { *out << p.name; }
inline std::string name_of(const testing::TestParamInfo<UserProgram>& info) { return info.param.name; }

class UserSituation : public testing::TestWithParam<UserProgram> {};

inline Tensor leaf(IntArrayRef sizes) { return (numbers(sizes) * 0.3 + 0.1).set_requires_grad(true); }
inline Tensor plain(IntArrayRef sizes) { return numbers(sizes) * 0.5; }
inline Tensors gradients(const nn::Module& m) {
  Tensors out;
  for (const Tensor& p : m.parameters()) out.push_back(p.grad().defined() ? p.grad().clone() : Tensor());
  return out;
}
inline Tensors values(const std::vector<Tensor>& list) {
  Tensors out;
  for (const Tensor& t : list) out.push_back(t.detach().clone());
  return out;
}

}  // namespace brasa
