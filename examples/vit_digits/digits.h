#pragma once

#include <string>

#include <brasa/data.h>

namespace demo {

/// 8 × 8 digits and their classes. Every fifth one is held out: 1,437 to train with, 360 to test with.
class Digits : public brasa::data::datasets::Dataset<Digits> {
 public:
  enum class Part { Train, HeldOut };
  /// Reads a gzipped CSV file: 64 pixels of 0 to 16 and the class in each row. std::runtime_error that names the line if it is not.
  Digits(const std::string& path, Part part);

  brasa::data::Example<> get(size_t index) override;
  std::optional<size_t> size() const override { return static_cast<size_t>(labels_.size(0)); }
  /// [n, 1, 8, 8] in [0, 1], [n].
  const brasa::Tensor& images() const { return images_; }
  const brasa::Tensor& labels() const { return labels_; }

 private:
  brasa::Tensor images_, labels_;
};

}  // namespace demo
