#include <brasa/brasa.h>
#include <brasa/nn/utils/rnn.h>

#include "support/error.h"

namespace brasa::nn::utils::rnn {

PackedSequence::PackedSequence(Tensor data, Tensor batch_sizes, Tensor sorted_indices, Tensor unsorted_indices)
    : data_(std::move(data)),
      batch_sizes_(std::move(batch_sizes)),
      sorted_indices_(std::move(sorted_indices)),
      unsorted_indices_(std::move(unsorted_indices)) {
  if (!unsorted_indices_.defined()) unsorted_indices_ = invert_permutation(sorted_indices_);
  BRASA_CHECK(batch_sizes_.device().is_cpu(), "PackedSequence: batch_sizes should be on the CPU");
}

PackedSequence PackedSequence::to(TensorOptions options) const {
  Tensor data = data_.to(options);
  if (data.is_same(data_)) return *this;
  auto moved = [&](const Tensor& indices) {
    return indices.defined() ? indices.to(data.device(), indices.scalar_type()) : indices;
  };
  return PackedSequence(data, batch_sizes_, moved(sorted_indices_), moved(unsorted_indices_));
}

Tensor invert_permutation(const Tensor& permutation) {
  if (!permutation.defined()) return {};
  Tensor inverse = empty_like(permutation);
  inverse.scatter_(0, permutation, arange(permutation.numel(), permutation.options()));
  return inverse;
}

namespace {

// {data, batch sizes} of sequences that are sorted: the steps that exist, one step of all sequences after the other.
std::tuple<Tensor, Tensor> packed(const Tensor& time_first, const Tensor& lengths) {
  int64_t longest = lengths[0].item<int64_t>();
  BRASA_CHECK(longest <= time_first.size(0), "pack_padded_sequence: a length of ", longest, " in an input of ",
              time_first.size(0), " steps");
  Tensor present = arange(longest, lengths.options()).unsqueeze(1).lt(lengths.unsqueeze(0));
  Tensor steps = present.reshape({-1}).nonzero().squeeze(1).to(time_first.device(), kLong);
  return {time_first.slice(0, 0, longest).flatten(0, 1).index_select(0, steps), present.sum(1)};
}

}  // namespace

PackedSequence pack_padded_sequence(Tensor input, Tensor lengths, bool batch_first, bool enforce_sorted) {
  lengths = lengths.to(Device(kCPU), kLong);
  Tensor sorted_indices;
  if (!enforce_sorted) {
    std::tie(lengths, sorted_indices) = sort(lengths, -1, true);
    sorted_indices = sorted_indices.to(input.device(), kLong);
    input = input.index_select(batch_first ? 0 : 1, sorted_indices);
  }
  if (batch_first) input = input.transpose(0, 1);
  BRASA_CHECK(lengths.dim() == 1 && lengths.size(0) == input.size(1),
              "pack_padded_sequence: expected a length for each of the ", input.size(1), " sequences, got ",
              lengths.sizes());
  BRASA_CHECK(lengths.size(0) > 0, "pack_padded_sequence: cannot pack an empty tensor");
  BRASA_CHECK(lengths.min().item<int64_t>() > 0, "pack_padded_sequence: every length has to be greater than 0");
  if (lengths.size(0) > 1)
    BRASA_CHECK(
        lengths.slice(0, 1).le(lengths.slice(0, 0, -1)).all().item<bool>(),
        "`lengths` must be sorted in decreasing order. You can pass `enforce_sorted=False` to have them sorted");
  auto [data, batch_sizes] = packed(input, lengths);
  return PackedSequence(data, batch_sizes, sorted_indices);
}

std::tuple<Tensor, Tensor> pad_packed_sequence(PackedSequence sequence, bool batch_first, double padding_value,
                                               std::optional<int64_t> total_length) {
  const Tensor& sizes = sequence.batch_sizes();
  int64_t longest = sizes.size(0), steps = longest, batch = sizes[0].item<int64_t>();
  if (total_length) {
    BRASA_CHECK(
        *total_length >= longest,
        "Expected total_length to be at least the length of the longest sequence in input, but got total_length=",
        *total_length, " and max sequence length being ", longest);
    steps = *total_length;
  }
  Tensor present = arange(batch, sizes.options()).unsqueeze(0).lt(sizes.unsqueeze(1));
  Tensor lengths = present.sum(0);
  Tensor places = present.reshape({-1}).nonzero().squeeze(1).to(sequence.data().device(), kLong);
  std::vector<int64_t> shape = sequence.data().sizes().vec();
  shape[0] = steps * batch;
  Tensor padded = full(shape, padding_value, sequence.data().options()).index_copy(0, places, sequence.data());
  shape[0] = batch;
  shape.insert(shape.begin(), steps);
  padded = padded.view(shape);
  if (batch_first) padded = padded.transpose(0, 1);
  if (sequence.unsorted_indices().defined()) {
    padded = padded.index_select(batch_first ? 0 : 1, sequence.unsorted_indices());
    lengths = lengths.index_select(0, sequence.unsorted_indices().cpu());
  }
  return {padded, lengths};
}

Tensor pad_sequence(ArrayRef<Tensor> sequences, bool batch_first, double padding_value) {
  return brasa::pad_sequence(sequences, batch_first, padding_value);
}

PackedSequence pack_sequence(ArrayRef<Tensor> sequences, bool enforce_sorted) {
  std::vector<int64_t> lengths;
  for (const Tensor& s : sequences) lengths.push_back(s.size(0));
  return pack_padded_sequence(rnn::pad_sequence(sequences), tensor(lengths, dtype(kLong)), false, enforce_sorted);
}

}  // namespace brasa::nn::utils::rnn
