#pragma once

#include "tensor/autograd/checkpoint.h"
#include "tensor/computation.h"

namespace brasa::autograd {

/// An operand of a backward program, kept from the forward call: a tensor with the version that it had, a number, or only
/// sizes where the program does not read it.
class Saved {
 public:
  Saved() = default;
  /// `read`: whether the values matter. `result`: a result of the node itself, kept without its history.
  Saved(const eager::InputTensor& in, bool read, bool result = false);
  Saved(const Tensor& t, bool result);

  /// The operand, which `holder` keeps; brasa::Error if the tensor was written to since. `node`: who saved it (for results).
  eager::InputTensor input(const std::shared_ptr<Node>& node, const std::string& name, Tensor& holder) const;
  /// The tensor itself with its history.
  Tensor unpack(const std::shared_ptr<Node>& node, const std::string& name) const;
  void set_tensor(const Tensor& t);
  /// Whether it has a tensor's values, or can make them.
  bool keeps() const { return tensor_.defined() || elsewhere_; }
  void reset();
  const Sizes& sizes() const { return sizes_; }
  DType dtype() const { return dtype_; }

 private:
  Tensor tensor_;
  std::unique_ptr<Elsewhere> elsewhere_;  // in place of the tensor
  Sizes sizes_, strides_;
  alignas(16) unsigned char number_[16] = {};
  uint32_t version_ = 0, output_nr_ = 0;
  DType dtype_ = DType::Float32;
  bool read_ = false, is_number_ = false, weak_ = false, result_ = false;
};

/// What stands for a tensor of these sizes whose elements nobody reads.
Tensor stand_in(DType dtype, const Sizes& sizes, runtime::Device& device);
/// brasa::Error for what was made in inference mode.
void check_saved(bool inference);
/// The error of a node whose saved tensor was written since.
std::string modified(const Tensor& t, const std::string& name, uint32_t now, uint32_t expected);

}  // namespace brasa::autograd
