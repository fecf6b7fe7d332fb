#include "ops/rows.h"
#include "ops/shapes.h"
#include "support/error.h"

// Operators whose result is a number, a truth value or a dtype: a tensor without dimensions here, int64, bool or the number of
// PyTorch's ScalarType.
namespace brasa::ops {
namespace {

Value truth(bool v) { return full(v, {}, DType::Bool); }
Value whole(Expr e) { return size_tensor(e, {}); }
Value code(DType t) { return full(static_cast<int64_t>(t), {}, DType::Int64); }

Value only_element(const char* op, Value x) {
  BRASA_CHECK(is_one(type_of(x).numel()), op, ": a Tensor with ", type_of(x).numel(),
              " elements cannot be converted to Scalar");
  return rank_of(x) == 0 ? x : prim::reshape(x, {});
}

bool same_shapes(Value a, Value b) {
  bool same = rank_of(a) == rank_of(b);
  for (int64_t d = 0; same && d < rank_of(a); ++d) same = same_size(size_of(a, d), size_of(b, d));
  return same;
}

Value equal(Value a, Value b) {
  if (!same_shapes(a, b)) return truth(false);
  return reduce(eq(a, b), all_dims(a), false, "and");
}

// Numbers of the program are float32 where nothing else decides.
DType default_of(DType t) {
  if (is_floating(t)) return DType::Float32;
  return is_complex(t) ? DType::Complex64 : t;
}

// Floating numbers do not become integers, nor numbers a bool, nor complex ones real.
bool can_cast(DType from, DType to) {
  if (is_complex(from) && !is_complex(to)) return false;
  if (is_floating(from) && is_integral(to, false)) return false;
  return from == DType::Bool || to != DType::Bool;
}

Value contiguous_stride(Value x, int64_t dim) {
  dim = wrap_dim(dim, rank_of(x));
  Expr n(1);
  for (int64_t d = dim + 1; d < rank_of(x); ++d) n = n * ir::max(size_of(x, d), 1);
  return whole(n);
}

Value shape_as_tensor(Value x) {
  if (rank_of(x) == 0) return full(0, {Expr(0)}, DType::Int64);
  std::vector<Value> sizes;
  for (Expr e : shape_of(x)) sizes.push_back(size_tensor(e, {Expr(1)}));
  return prim::concat(sizes, 0);
}

void add_values(Table& t) {
  for (const char* name : {"item", "_local_scalar_dense"})
    t.op(str("aten::", name, "(Tensor self) -> Scalar"))
        .doc("The only element.")
        .composed([](Value x) { return only_element("item", x); })
        .no_gradient()
        .samples({{floats()}, {ints(1, 1)}});
  t.op("aten::is_nonzero(Tensor self) -> bool")
      .doc("Is the only element not 0?")
      .composed([](Value x) {
        BRASA_CHECK(is_one(type_of(x).numel()), "Boolean value of Tensor with ", type_of(x).numel(),
                    " values is ambiguous, got ", type_of(x));
        return ne(only_element("is_nonzero", x), 0);
      })
      .no_gradient()
      .samples({{floats()}, {ints(1, 1)}});
  t.op("aten::equal(Tensor self, Tensor other) -> bool")
      .doc("Are shapes and all elements equal, whatever their dtypes? NaN is equal to nothing.")
      .composed(equal)
      .no_gradient()
      .samples({{floats(3, 5), floats(3, 5)}, {ints(4), ints(4)}, {floats(2), floats(3)}, {floats(0), floats(0)}});
  t.op("aten::_is_all_true(Tensor self) -> Tensor")
      .doc("Are all of a bool tensor's elements true?")
      .composed([](Value x) {
        BRASA_CHECK(dtype_of(x) == DType::Bool, "_is_all_true: expected a bool tensor, got ", type_of(x));
        return reduce(x, all_dims(x), false, "and");
      })
      .samples({{bools(3, 5)}, {bools(0)}});
  t.op("aten::_is_any_true(Tensor self) -> Tensor")
      .doc("Is any of a bool tensor's elements true?")
      .composed([](Value x) {
        BRASA_CHECK(dtype_of(x) == DType::Bool, "_is_any_true: expected a bool tensor, got ", type_of(x));
        return reduce(x, all_dims(x), false, "or");
      })
      .samples({{bools(3, 5)}, {bools(0)}});
  t.op("aten::_functional_assert_async.msg(Tensor self, str assert_msg, Tensor dep_token) -> Tensor")
      .doc("`dep_token`, where the only element is not 0; else an error with the message.")
      .composed([](Value x, const std::string& message, Value token) {
        check_values(ne(only_element("_functional_assert_async", x), 0), message);
        return token;
      })
      .no_gradient()
      .samples({{bools(1, 1).in(1, 2), "an element is 0", floats(3)}, {ints().in(1, 3), "an element is 0", ints(2)}});
}

void add_shapes(Table& t) {
  t.op("aten::is_same_size(Tensor self, Tensor other) -> bool")
      .doc("Are the shapes equal?")
      .composed([](Value a, Value b) { return truth(same_shapes(a, b)); })
      .no_gradient()
      .samples({{floats(3, 5), floats(3, 5)}, {floats(3), floats(2)}});
  for (const char* name : {"size.int(Tensor self, int dim) -> int", "sym_size.int(Tensor self, int dim) -> SymInt"})
    t.op(str("aten::", name))
        .doc("The size of a dimension.")
        .composed([](Value x, int64_t dim) {
          BRASA_CHECK(rank_of(x) > 0, "size: dimension ", dim, " of a tensor that has no dimensions");
          return whole(size_of(x, wrap_dim(dim, rank_of(x))));
        })
        .no_gradient()
        .samples({{floats(3, 5), -1}});
  for (const char* name : {"numel(Tensor self) -> int", "sym_numel(Tensor self) -> SymInt"})
    t.op(str("aten::", name))
        .doc("The number of elements.")
        .composed([](Value x) { return whole(type_of(x).numel()); })
        .no_gradient()
        .samples({{floats(3, 5)}, {floats(0)}});
  t.op("aten::_shape_as_tensor(Tensor self) -> Tensor")
      .doc("All sizes as a vector.")
      .composed(shape_as_tensor)
      .no_gradient()
      .samples({{floats(3, 5)}, {floats()}, {floats(0)}});
  t.op("aten::dim(Tensor self) -> int")
      .doc("The number of dimensions.")
      .composed([](Value x) { return whole(Expr(rank_of(x))); })
      .no_gradient()
      .samples({{floats(3, 5)}});
  for (const char* name : {"stride.int(Tensor self, int dim) -> int", "sym_stride.int(Tensor self, int dim) -> SymInt"})
    t.op(str("aten::", name))
        .doc(
            "The distance in memory between neighbours along a dimension. In a graph, where nothing has memory, that of a contiguous "
            "tensor.")
        .memory(Memory::Stride)
        .composed(contiguous_stride)
        .no_gradient()
        .samples({{floats(3, 5), 0}});
  for (const char* name : {"storage_offset(Tensor self) -> int", "sym_storage_offset(Tensor self) -> SymInt"})
    t.op(str("aten::", name))
        .doc("Where the first element lies in memory. In a graph, where nothing has memory, 0.")
        .memory(Memory::StorageOffset)
        .composed([](Value) { return whole(0); })
        .no_gradient()
        .samples({{floats(3, 5)}});
}

void add_dtypes(Table& t) {
  t.op("aten::is_floating_point(Tensor self) -> bool")
      .doc("Has it a floating dtype?")
      .composed([](Value x) { return truth(is_floating(dtype_of(x))); })
      .no_gradient()
      .samples({{floats(3)}, {ints(3)}});
  t.op("aten::is_complex(Tensor self) -> bool")
      .doc("Has it a complex dtype?")
      .composed([](Value x) { return truth(is_complex(dtype_of(x))); })
      .no_gradient()
      .samples({{floats(3)}});
  t.op("aten::is_signed(Tensor self) -> bool")
      .doc("Has its dtype negative numbers?")
      .composed([](Value x) { return truth(brasa::is_signed(dtype_of(x))); })
      .no_gradient()
      .samples({{floats(3)}, {bools(3)}});
  t.op("aten::can_cast(ScalarType from_, ScalarType to) -> bool")
      .doc("Does PyTorch's promotion allow this conversion in place?")
      .composed([](DType from, DType to) { return truth(can_cast(from, to)); })
      .no_gradient()
      .samples({{DType::Float32, DType::Int64}, {DType::Int64, DType::Float32}});
  t.op("aten::promote_types(ScalarType type1, ScalarType type2) -> ScalarType")
      .doc("The smallest dtype that both fit in.")
      .composed([](DType a, DType b) { return code(promote(a, b)); })
      .no_gradient()
      .samples({{DType::Float32, DType::Int64}});
  t.op("aten::result_type.Tensor(Tensor tensor, Tensor other) -> ScalarType")
      .doc("The dtype of an operation on both.")
      .composed([](Value a, Value b) { return code(result_type({a, b})); })
      .no_gradient()
      .samples({{floats(3), ints(3)}, {ints(3), floats()}});
  t.op("aten::result_type.Scalar(Tensor tensor, Scalar other) -> ScalarType")
      .doc("The dtype of an operation on both.")
      .composed([](Value a, Number b) { return code(dtype_of(promoted(a, b)[0])); })
      .no_gradient()
      .samples({{ints(3), 2.5}});
  t.op("aten::result_type.Scalar_Tensor(Scalar scalar, Tensor tensor) -> ScalarType")
      .doc("The dtype of an operation on both.")
      .composed([](Number a, Value b) { return code(dtype_of(promoted(b, a)[0])); })
      .no_gradient()
      .samples({{2.5, ints(3)}});
  t.op("aten::result_type.Scalar_Scalar(Scalar scalar1, Scalar scalar2) -> ScalarType")
      .doc("The dtype of an operation on both, float32 standing for floating numbers.")
      .composed([](Number a, Number b) { return code(default_of(result_type({to_value(a), to_value(b)}))); })
      .no_gradient()
      .samples({{2.5, 1}});
}

}  // namespace

void add_questions(Table& t) {
  add_values(t);
  add_shapes(t);
  add_dtypes(t);
}

}  // namespace brasa::ops
