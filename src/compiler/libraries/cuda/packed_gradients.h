#pragma once

#include <array>
#include <optional>
#include <vector>

#include "compiler/fusion/indexing.h"

// Gradients of attention's queries, keys and values that lie in one tensor.
namespace brasa::compiler {

/// Where one of the gradients lies in a tensor that gets all three.
struct Part {
  ir::Expr offset;
  std::vector<ir::Expr> steps;  // by dimension of the gradient
};

/// The gradients of queries, keys and values side by side along a dimension of one tensor, as a projection to all of them gets them: each
/// with zeros around it, added up, or one after the other.
class PackedGradients {
 public:
  /// What `n` is a view of.
  explicit PackedGradients(const ir::Node& n);
  explicit operator bool() const { return whole_; }
  const ir::Node* attention() const { return attention_; }
  const std::vector<const ir::Node*>& inside() const { return inside_; }

  /// In memory with these strides.
  Part part(uint32_t result, const std::vector<ir::Expr>& strides) const;
  /// Whether the tensor is [batches, rows, …].
  bool in_rows() const;

 private:
  struct Found {
    Index at;  // of its element for one of the whole tensor's
    ir::Expr low, size;
  };
  bool look(ir::Value v, const Index& at);
  bool look_sum(ir::Value a, ir::Value b, const Index& at);
  bool look_around(const ir::Node* n, const Index& at);
  bool look_at_parts(const ir::Node* n, const Index& at);
  bool look_within(ir::Value v, Index at, size_t dim, ir::Expr low);
  bool is_step(ir::Expr e) const;
  bool side_by_side(const ir::Node& n) const;

  Index at_;
  size_t along_;  // which dimension
  bool whole_ = false, padded_ = false;
  ir::Expr low_ = 0, size_ = 0;  // of the pad that is looked through
  const ir::Node* attention_ = nullptr;
  std::vector<const ir::Node*> inside_;
  std::array<Found, 3> found_;
};

/// The sums of each 64 rows of a head's in such a tensor, [batches, sums, columns]: attention's kernels add them up.
struct SummedGradients {
  const ir::Node* packed;
  std::vector<const ir::Node*> inside;  // besides
};
std::optional<SummedGradients> summed_gradients(const ir::Node& n);
/// As the first step of a sum over these dimensions, which are all rows; null where it is no such tensor.
ir::Value sums_of_gradients(ir::Value x, const std::vector<int64_t>& dims);

}  // namespace brasa::compiler
