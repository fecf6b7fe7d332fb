#include <brasa/data/samplers.h>

#include <algorithm>
#include <numeric>
#include <random>

#include <brasa/brasa.h>

#include "support/error.h"

namespace brasa::data::samplers {
namespace {

void write_index(serialize::OutputArchive& archive, const char* key, size_t value) {
  archive.write(key, scalar_tensor(static_cast<int64_t>(value), kInt64));
}
size_t read_index(serialize::InputArchive& archive, const char* key) {
  Tensor t;
  archive.read(key, t);
  return static_cast<size_t>(t.item<int64_t>());
}

}  // namespace

void SequentialSampler::reset(std::optional<size_t> new_size) {
  size_ = new_size.value_or(size_);
  index_ = 0;
}

std::optional<std::vector<size_t>> SequentialSampler::next(size_t batch_size) {
  size_t n = index_ < size_ ? std::min(batch_size, size_ - index_) : 0;
  if (n == 0) return std::nullopt;
  std::vector<size_t> out(n);
  std::iota(out.begin(), out.end(), index_);
  index_ += n;
  return out;
}

void SequentialSampler::save(serialize::OutputArchive& archive) const { write_index(archive, "index", index_); }
void SequentialSampler::load(serialize::InputArchive& archive) {
  // The size that it was saved with may be set after it.
  index_ = read_index(archive, "index");
}

RandomSampler::RandomSampler(size_t size) : order_(size) { RandomSampler::reset(std::nullopt); }

void RandomSampler::reset(std::optional<size_t> new_size) {
  order_.resize(new_size.value_or(order_.size()));
  index_ = 0;
  std::iota(order_.begin(), order_.end(), size_t{0});
  Generator::Key key = default_generator().take(4);
  std::seed_seq seeds{static_cast<uint32_t>(key.seed), static_cast<uint32_t>(key.seed >> 32),
                      static_cast<uint32_t>(key.offset), static_cast<uint32_t>(key.offset >> 32)};
  std::mt19937_64 numbers(seeds);
  // Written out, so that the order does not depend on the standard library. The bias is below n / 2^64.
  for (size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[numbers() % i]);
}

std::optional<std::vector<size_t>> RandomSampler::next(size_t batch_size) {
  size_t n = std::min(batch_size, order_.size() - index_);
  if (n == 0) return std::nullopt;
  auto begin = order_.begin() + static_cast<ptrdiff_t>(index_);
  index_ += n;
  return std::vector<size_t>(begin, begin + static_cast<ptrdiff_t>(n));
}

void RandomSampler::save(serialize::OutputArchive& archive) const {
  write_index(archive, "index", index_);
  archive.write("order", tensor(std::vector<int64_t>(order_.begin(), order_.end()), kInt64));
}

void RandomSampler::load(serialize::InputArchive& archive) {
  Tensor order;
  archive.read("order", order);
  order = order.cpu();
  BRASA_CHECK(order.dim() == 1 && order.scalar_type() == kInt64 && order.size(0) == static_cast<int64_t>(order_.size()),
              "RandomSampler: the order that was saved is not one of ", order_.size(), " examples");
  std::vector<bool> seen(order_.size());
  const int64_t* values = order.const_data_ptr<int64_t>();
  for (size_t i = 0; i < order_.size(); ++i) {
    BRASA_CHECK(values[i] >= 0 && values[i] < order.size(0) && !seen[static_cast<size_t>(values[i])],
                "RandomSampler: the order that was saved is no permutation");
    order_[i] = static_cast<size_t>(values[i]);
    seen[order_[i]] = true;
  }
  index_ = std::min(order_.size(), read_index(archive, "index"));
}

DistributedRandomSampler::DistributedRandomSampler(size_t size, size_t num_replicas, size_t rank, bool allow_duplicates)
    : DistributedSampler(size, num_replicas, rank, allow_duplicates) {
  DistributedRandomSampler::reset(std::nullopt);
}

void DistributedRandomSampler::reset(std::optional<size_t> new_size) {
  size_ = new_size.value_or(size_);
  // What all replicas take together; the first examples make up for those that lack.
  std::vector<size_t> all(num_replicas_ == 1 ? size_ : local_sample_count() * num_replicas_);
  for (size_t i = 0; i < all.size(); ++i) all[i] = i % size_;
  std::mt19937_64 numbers(epoch_);
  for (size_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[numbers() % i]);
  order_.clear();
  for (size_t i = 0; i < local_sample_count(); ++i) order_.push_back(all[rank_ * local_sample_count() + i]);
  index_ = 0;
}

std::optional<std::vector<size_t>> DistributedRandomSampler::next(size_t batch_size) {
  size_t n = std::min(batch_size, order_.size() - index_);
  if (n == 0) return std::nullopt;
  auto begin = order_.begin() + static_cast<ptrdiff_t>(index_);
  index_ += n;
  return std::vector<size_t>(begin, begin + static_cast<ptrdiff_t>(n));
}

void DistributedRandomSampler::save(serialize::OutputArchive& archive) const {
  write_index(archive, "index", index_);
  write_index(archive, "epoch", epoch_);
}
void DistributedRandomSampler::load(serialize::InputArchive& archive) {
  epoch_ = read_index(archive, "epoch");
  reset(size_);
  index_ = std::min(order_.size(), read_index(archive, "index"));
}

void DistributedSequentialSampler::reset(std::optional<size_t> new_size) {
  size_ = new_size.value_or(size_);
  index_ = 0;
}

std::optional<std::vector<size_t>> DistributedSequentialSampler::next(size_t batch_size) {
  size_t n = std::min(batch_size, local_sample_count() - index_);
  if (n == 0) return std::nullopt;
  std::vector<size_t> out(n);
  for (size_t& i : out) i = (rank_ * local_sample_count() + index_++) % size_;
  return out;
}

void DistributedSequentialSampler::save(serialize::OutputArchive& archive) const {
  write_index(archive, "index", index_);
}
void DistributedSequentialSampler::load(serialize::InputArchive& archive) {
  index_ = std::min(local_sample_count(), read_index(archive, "index"));
}

void StreamSampler::reset(std::optional<size_t> new_size) {
  epoch_size_ = new_size.value_or(epoch_size_);
  given_ = 0;
}

std::optional<BatchSize> StreamSampler::next(size_t batch_size) {
  size_t n = std::min(batch_size, epoch_size_ - given_);
  if (n == 0) return std::nullopt;
  if (epoch_size_ != static_cast<size_t>(-1)) given_ += n;
  return BatchSize(n);
}

void StreamSampler::save(serialize::OutputArchive& archive) const { write_index(archive, "given", given_); }
void StreamSampler::load(serialize::InputArchive& archive) {
  given_ = std::min(epoch_size_, read_index(archive, "given"));
}

}  // namespace brasa::data::samplers
