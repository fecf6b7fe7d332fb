#include <cmath>

#include "ops/algebra.h"
#include "ops/primitives/families.h"
#include "ops/primitives/interp.h"
#include "support/error.h"

namespace brasa::ops {

void add_creation_primitives(Table& t) {
  t.prim("full(Scalar value, SymInt[] size, ScalarType dtype) -> Tensor")
      .kind(Kind::Full)
      .doc("One literal everywhere.")
      .no_gradient()
      .type([](const Args& args) { return std::vector<Type>{{args[2].get<DType>(), args[1].get<Shape>(), false}}; })
      .eval([](const Node& n, std::span<const Array* const>) {
        Array out = result_array(n);
        for (int64_t i = 0; i < out.numel(); ++i) set_literal(out, i, n.arg(0));
        return std::vector<Array>{std::move(out)};
      });
  t.prim("iota(SymInt[] size, int dim, ScalarType dtype) -> Tensor")
      .kind(Kind::Iota)
      .doc("0, 1, … along one dimension, the same along all others.")
      .no_gradient()
      .type([](const Args& args) { return std::vector<Type>{{args[2].get<DType>(), args[0].get<Shape>(), false}}; })
      .eval([](const Node& n, std::span<const Array* const>) {
        Array out = result_array(n);
        int64_t dim = n.arg<Expr>(1).constant(), i = 0;
        std::vector<int64_t> index(out.shape.size());
        if (out.numel() > 0) do
            set_int(out, i++, index[dim]);
          while (next_index(index, out.shape));
        return std::vector<Array>{std::move(out)};
      });
  t.prim("size_value(SymInt value) -> Tensor")
      .kind(Kind::SizeValue)
      .doc("A size as a number of the graph.")
      .no_gradient()
      .type([](const Args&) { return std::vector<Type>{{DType::Int64, {}, false}}; })
      .eval([](const Node& n, std::span<const Array* const>) {
        Array out = result_array(n);
        set_int(out, 0, n.arg<Expr>(0).constant());
        return std::vector<Array>{std::move(out)};
      });
}

namespace prim {

Value full(const Number& value, const Shape& shape, DType dtype) {
  // One spelling for each constant, so that equal ones are one node.
  Arg literal = value.arg();
  if (is_complex(dtype))
    literal = Arg(value.as_complex());
  else if (is_floating(dtype))
    literal = Arg(value.as_double());
  else if (dtype == DType::Bool)
    literal = Arg(!value.is(0));
  else if (literal.is<bool>())
    literal = Arg(int64_t{literal.get<bool>()});
  else if (auto* d = literal.get_if<double>())
    literal = Arg(truncated(*d));
  return call("prim::full", {literal, shape, dtype});
}
Value iota(const Shape& shape, int64_t dim, DType dtype) { return call("prim::iota", {shape, dim, dtype}); }
Value size_value(Expr e) { return call("prim::size_value", {e}); }

}  // namespace prim
}  // namespace brasa::ops
