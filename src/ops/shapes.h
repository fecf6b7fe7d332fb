#pragma once

#include "ops/algebra.h"

// Questions about sizes, and the movements that families share.
namespace brasa::ops {

using Dims = std::vector<int64_t>;

/// from, from + 1, …, n of them.
Dims counted(int64_t from, int64_t n);
Dims all_dims(Value v);

/// a < b? Decided by proof, or by this call's sizes and a fact.
bool is_less(Expr a, Expr b);
/// brasa::Error naming both shapes if v has another one.
void check_shape(const char* op, const char* what, Value v, const Shape& shape);
/// The value of a size in this call, where the number of results or of steps depends on it; remembered as a fact.
int64_t known_size(Expr e);
/// A size as an int64 (or other) tensor of this shape.
Value size_tensor(Expr e, const Shape& shape, DType dtype = DType::Int64);
/// A list of one or n numbers as n, for PyTorch's int[2] that may be given as one number.
std::vector<Expr> repeated(const std::vector<Expr>& items, size_t n, const char* what);

/// [1] for a tensor without dimensions.
Value at_least_1d(Value x);
Value flattened(Value x);
/// The dimensions `from` go to the places `to`; the others keep their order.
Value move_dims(Value x, const Dims& from, const Dims& to);
/// x[dim] as two or more dimensions.
Value split_dim(Value x, int64_t dim, const Shape& sizes);
/// Dimensions first … last as one.
Value merge_dims(Value x, int64_t first, int64_t last);
/// x repeated along a new dimension.
Value repeat_along(Value x, int64_t dim, Expr n);
/// A rank-1 value as dimension `dim` of a shape of this rank, for broadcasting.
Value along(Value x, int64_t dim, int64_t rank);
/// The diagonal that starts `offset` columns to the right, as a last dimension in place of dim1 and dim2; a view.
Value diagonal(Value x, Expr offset, int64_t dim1, int64_t dim2);
/// x's last dimension on that diagonal of two new ones, zeros elsewhere.
Value diagonal_embedded(Value x, Expr offset, int64_t dim1, int64_t dim2);
/// [rows, columns] true where column - row compares so with `offset`: "le", "ge", "eq".
Value band(const Shape& shape, const char* comparison, Expr offset);

/// As checked_index for operators that take no negative indices.
Value checked_forward_index(Value index, Expr n, const char* op);

/// Advanced indexing (index, index_put) as prim::gather takes it.
struct Picks {
  Value x;
  std::vector<Value> indices;  // of one shape
  Dims dims;
  int64_t index_rank = 0;
  int64_t place = -1;  // where the indices' dimensions stand in the result; -1: in front, as gather gives them
  Value in_place(Value gathered) const;
  Value in_front(Value values) const;
};
/// `checked_for` names the operator in the message of the range check; null makes none.
Picks picks(Value x, const std::vector<Value>& indices, const char* checked_for);

/// Stands for a result that the caller did not ask for (output_mask).
inline Value no_result(DType dtype) { return full(0, {Expr(0)}, dtype); }

/// The cotangent of `from` for `ct` of `to`, where `to` comes from it by linear primitives in their first operand.
Value pulled_through(Value from, Value to, Value ct);

}  // namespace brasa::ops
