#include <brasa/brasa.h>
#include <brasa/data/datasets.h>

namespace brasa::data::datasets {

TensorDataset::TensorDataset(const std::vector<Tensor>& tensors) : tensor_(stack(tensors)) {}
TensorDataset::TensorDataset(Tensor tensor) : tensor_(std::move(tensor)) {}
TensorDataset::~TensorDataset() = default;
TensorExample TensorDataset::get(size_t index) { return tensor_[static_cast<int64_t>(index)]; }
std::optional<size_t> TensorDataset::size() const { return static_cast<size_t>(tensor_.size(0)); }

}  // namespace brasa::data::datasets
