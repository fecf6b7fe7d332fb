#pragma once

#include <brasa/call.h>
#include <brasa/factories.h>

#include <forward_list>
#include <string_view>
#include <vector>

#include "samples.h"
#include "tensor/args.h"

namespace brasa::test {

using SampleArgs = std::vector<ops::SampleArg>;

/// A sample's arguments as `brasa::call` takes them. With `gradients` floating tensors ask for one.
class EagerCall {
 public:
  EagerCall(const ops::Row& row, const SampleArgs& args, bool gradients = false) : gradients_(gradients) {
    for (size_t i = 0; i < args.size(); ++i) add(row.schema.params[i], args[i]);
  }
  const std::vector<brasa::CallArg>& args() const { return args_; }
  /// The tensors that ask for a gradient.
  const std::vector<Tensor>& asked() const { return asked_; }

 private:
  void add(const ir::Param& param, const ops::SampleArg& arg) {
    if (auto* literal = std::get_if<ir::Arg>(&arg)) {
      args_.push_back(literals_.of(*literal, param));
      auto* text = literal->get_if<std::string>();
      if (text && args_.back().kind == brasa::CallArg::Kind::None)
        args_.back() = brasa::CallArg(std::string_view(*text));
      return;
    }
    std::vector<Tensor>& tensors = tensors_.emplace_front();
    if (auto* one = std::get_if<ops::TensorSample>(&arg)) {
      tensors.push_back(make(*one));
      args_.emplace_back(tensors[0]);
      return;
    }
    for (const ops::TensorSample& s : std::get<std::vector<ops::TensorSample>>(arg)) tensors.push_back(make(s));
    if (param.optional_items)
      args_.emplace_back(ArrayRef<std::optional<Tensor>>(optionals_.emplace_front(tensors.begin(), tensors.end())));
    else
      args_.emplace_back(TensorList(tensors));
  }
  Tensor make(const ops::TensorSample& s) {
    ops::Array a = sample_array(s);
    Tensor t = from_blob(a.data.data(), a.shape, TensorOptions(a.dtype)).clone();
    if (gradients_ && is_floating(t.scalar_type())) asked_.push_back(t.set_requires_grad(true));
    return t;
  }
  bool gradients_;
  std::vector<Tensor> asked_;
  std::vector<brasa::CallArg> args_;
  std::forward_list<std::vector<Tensor>> tensors_;
  std::forward_list<std::vector<std::optional<Tensor>>> optionals_;
  eager::Literals literals_;
};

}  // namespace brasa::test
