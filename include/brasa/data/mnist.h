#pragma once

#include <string>

#include <brasa/data/datasets.h>

namespace brasa::data::datasets {

/// The handwritten digits of LeCun et al. from a folder with the four uncompressed IDX files: images [1, 28, 28] in [0, 1] and
/// the digit as int64.
class BRASA_API MNIST : public Dataset<MNIST> {
 public:
  enum class Mode { kTrain, kTest };
  /// brasa::Error for a missing or broken file.
  explicit MNIST(const std::string& root, Mode mode = Mode::kTrain);
  ~MNIST() override;
  Example<> get(size_t index) override;
  std::optional<size_t> size() const override;
  bool is_train() const noexcept { return train_; }
  const Tensor& images() const { return images_; }
  const Tensor& targets() const { return targets_; }

 private:
  Tensor images_, targets_;
  bool train_;
};

}  // namespace brasa::data::datasets
