#pragma once

#include <brasa/factories.h>

#include "pack/sample_call.h"
#include "samples.h"

namespace brasa::test {

using SampleArgs = std::vector<ops::SampleArg>;

/// A sample's arguments as `brasa::call` takes them. With `gradients` floating tensors ask for one.
class EagerCall {
 public:
  EagerCall(const ops::Row& row, const SampleArgs& args, bool gradients = false)
      : call_(row, args, [&](const ops::TensorSample& s) {
          ops::Array a = sample_array(s);
          Tensor t = from_blob(a.data.data(), a.shape, TensorOptions(a.dtype)).clone();
          if (gradients && is_floating(t.scalar_type())) asked_.push_back(t.set_requires_grad(true));
          return t;
        }) {}
  const std::vector<brasa::CallArg>& args() const { return call_.args(); }
  /// The tensors that ask for a gradient.
  const std::vector<Tensor>& asked() const { return asked_; }

 private:
  std::vector<Tensor> asked_;
  pack::SampleCall call_;
};

}  // namespace brasa::test
