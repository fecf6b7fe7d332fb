#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <brasa/tensor.h>

/// Python-style indices: `x.index({Slice(1, 3), None, Ellipsis, 0, mask})`.
namespace brasa::indexing {

inline constexpr std::nullopt_t None = std::nullopt;
struct EllipsisType {};
inline constexpr EllipsisType Ellipsis{};

/// What stands for a missing start or stop, by the step's sign.
inline constexpr int64_t INDEX_MIN = -(int64_t{1} << 62);
inline constexpr int64_t INDEX_MAX = -(INDEX_MIN + 1);

/// start:stop:step; what is missing runs to the end. Negative numbers count from the end; the step is positive.
class Slice {
 public:
  Slice(std::optional<int64_t> start = {}, std::optional<int64_t> stop = {},
        std::optional<int64_t> step = {})  // NOLINT
      : step_(step.value_or(1)) {
    start_ = start.value_or(step_ < 0 ? INDEX_MAX : 0);
    stop_ = stop.value_or(step_ < 0 ? INDEX_MIN : INDEX_MAX);
  }
  int64_t start() const { return start_; }
  int64_t stop() const { return stop_; }
  int64_t step() const { return step_; }

 private:
  int64_t start_, stop_, step_;
};

class TensorIndex {
 public:
  enum class Kind : uint8_t { None, Ellipsis, Integer, Boolean, Slice, Tensor };

  TensorIndex(std::nullopt_t) : kind_(Kind::None) {}           // NOLINT
  TensorIndex(EllipsisType) : kind_(Kind::Ellipsis) {}         // NOLINT
  BRASA_API TensorIndex(const char* dots);                     // NOLINT: "..."
  TensorIndex(int64_t i) : kind_(Kind::Integer), slice_(i) {}  // NOLINT
  TensorIndex(int i) : TensorIndex(int64_t{i}) {}              // NOLINT
  template <class T>
    requires std::is_same_v<T, bool>
  TensorIndex(T b) : kind_(Kind::Boolean), slice_(b ? 1 : 0) {}          // NOLINT
  TensorIndex(Slice s) : kind_(Kind::Slice), slice_(s) {}                // NOLINT
  TensorIndex(Tensor t) : kind_(Kind::Tensor), tensor_(std::move(t)) {}  // NOLINT

  Kind kind() const { return kind_; }
  bool is_none() const { return kind_ == Kind::None; }
  bool is_ellipsis() const { return kind_ == Kind::Ellipsis; }
  bool is_integer() const { return kind_ == Kind::Integer; }
  bool is_boolean() const { return kind_ == Kind::Boolean; }
  bool is_slice() const { return kind_ == Kind::Slice; }
  bool is_tensor() const { return kind_ == Kind::Tensor; }
  int64_t integer() const { return slice_.start(); }
  bool boolean() const { return slice_.start() != 0; }
  const Slice& slice() const { return slice_; }
  const Tensor& tensor() const { return tensor_; }

 private:
  Kind kind_;
  Slice slice_;
  Tensor tensor_;
};

/// "1:3:1", "...", "None", as Python writes them.
BRASA_API std::ostream& operator<<(std::ostream& out, const Slice& slice);
BRASA_API std::ostream& operator<<(std::ostream& out, const TensorIndex& index);
BRASA_API std::ostream& operator<<(std::ostream& out, const std::vector<TensorIndex>& indices);

}  // namespace brasa::indexing
