#pragma once

#include <tuple>
#include <vector>

#include <brasa/tensor.h>

/// Sequences of different lengths in one tensor.
namespace brasa::nn::utils::rnn {

/// Steps of several sequences, those of the first step first: data [sum of batch_sizes, …], batch_sizes [longest] on the CPU, how
/// many sequences reach that step. sorted_indices, if defined, ordered the sequences by falling length; unsorted_indices
/// restore their order.
class BRASA_API PackedSequence {
 public:
  explicit PackedSequence(Tensor data, Tensor batch_sizes, Tensor sorted_indices = {}, Tensor unsorted_indices = {});

  const Tensor& data() const { return data_; }
  const Tensor& batch_sizes() const { return batch_sizes_; }
  const Tensor& sorted_indices() const { return sorted_indices_; }
  const Tensor& unsorted_indices() const { return unsorted_indices_; }

  PackedSequence to(TensorOptions options) const;
  PackedSequence cpu() const { return to(TensorOptions(kCPU)); }
  PackedSequence cuda() const { return to(TensorOptions(kCUDA)); }
  PackedSequence pin_memory() const { return *this; }
  bool is_cuda() const { return data_.is_cuda(); }
  bool is_pinned() const { return false; }

 private:
  Tensor data_, batch_sizes_, sorted_indices_, unsorted_indices_;
};

BRASA_API Tensor invert_permutation(const Tensor& permutation);
/// From input [longest, N, …] (batch_first: [N, longest, …]) whose sequence n has lengths[n] steps. With enforce_sorted the
/// lengths must not rise.
BRASA_API PackedSequence pack_padded_sequence(Tensor input, Tensor lengths, bool batch_first = false,
                                              bool enforce_sorted = true);
/// The way back: {padded, lengths}, in the order before sorting.
BRASA_API std::tuple<Tensor, Tensor> pad_packed_sequence(PackedSequence sequence, bool batch_first = false,
                                                         double padding_value = 0.0,
                                                         std::optional<int64_t> total_length = {});
/// Of tensors [length, …], the lengths of which may differ: [longest, N, …].
BRASA_API Tensor pad_sequence(ArrayRef<Tensor> sequences, bool batch_first = false, double padding_value = 0);
BRASA_API PackedSequence pack_sequence(ArrayRef<Tensor> sequences, bool enforce_sorted = true);

}  // namespace brasa::nn::utils::rnn
