#include <algorithm>

#include "ops/algebra.h"
#include "ops/combiner.h"
#include "ops/complex.h"
#include "ops/primitives/families.h"
#include "ops/primitives/interp.h"
#include "ops/primitives/rules.h"
#include "support/error.h"

namespace brasa::ops {
namespace {

std::vector<int64_t> int_list(const Arg& a) { return constants(a.get<std::vector<Expr>>()); }

// That of gather's result; the indices are of one shape, one for each of dims.
Shape gathered_shape(const Shape& x, const std::vector<Value>& indices, const std::vector<int64_t>& dims) {
  Shape shape = shape_of(indices[0]);
  BRASA_CHECK(indices.size() == dims.size(), "expected an index for each of the dimensions ", dims, ", got ",
              indices.size());
  for (Value i : indices)
    BRASA_ASSERT(dtype_of(i) == DType::Int64 && shape_of(i) == shape, "an index ", ir::type_of(i), " beside one of ",
                 shape);
  for (size_t d = 0; d < x.size(); ++d)
    if (std::find(dims.begin(), dims.end(), static_cast<int64_t>(d)) == dims.end()) shape.push_back(x[d]);
  return shape;
}

// Calls f(position in x, position in gather's result) for every element of the result.
template <class F>
void each_gathered(const std::vector<int64_t>& x_shape, std::span<const Array* const> indices,
                   const std::vector<int64_t>& dims, F f) {
  const std::vector<int64_t>& index_shape = indices[0]->shape;
  std::vector<int64_t> strides = row_major(x_shape), rest;
  for (size_t d = 0; d < x_shape.size(); ++d)
    if (std::find(dims.begin(), dims.end(), static_cast<int64_t>(d)) == dims.end())
      rest.push_back(static_cast<int64_t>(d));
  std::vector<int64_t> shape = index_shape;
  for (int64_t d : rest) shape.push_back(x_shape[d]);
  for (int64_t s : shape)
    if (s == 0) return;
  std::vector<int64_t> at(shape.size()), index_strides = row_major(index_shape);
  int64_t i = 0;
  do {
    int64_t where = 0, s = 0;
    for (size_t d = 0; d < index_shape.size(); ++d) where += at[d] * index_strides[d];
    for (size_t k = 0; k < dims.size(); ++k) {
      int64_t last = x_shape[dims[k]] - 1;
      s += std::clamp<int64_t>(get_int(*indices[k], where), 0, std::max<int64_t>(last, 0)) * strides[dims[k]];
    }
    for (size_t k = 0; k < rest.size(); ++k) s += at[index_shape.size() + k] * strides[rest[k]];
    f(s, i++);
  } while (next_index(at, shape));
}

// Operands of a gather or scatter that is done once for each of `count`: indices of that many, with the first dimension's
// among them where what they pick from has it.
struct Mapped {
  std::vector<Value> indices;
  std::vector<int64_t> dims;
};

Mapped mapped_indices(std::span<const Value> indices, const std::vector<bool>& mapped, size_t first,
                      const std::vector<int64_t>& dims, Expr count) {
  Mapped out;
  for (size_t i = 0; i < indices.size(); ++i) out.indices.push_back(with_mapped(indices[i], mapped[first + i], count));
  out.indices.insert(out.indices.begin(), prim::iota(shape_of(out.indices[0]), 0, DType::Int64));
  out.dims.push_back(0);
  for (int64_t d : dims) out.dims.push_back(d + 1);
  return out;
}

// The derivatives of a scatter's products by each factor: the product of all others, without dividing by zero. Two zeros make every one 0; a lone
// zero leaves only its own.
struct Slopes {
  Value x, updates;
};
Slopes slopes_of_products(const Node& n) {
  Value x = n.arg<Value>(0), updates = n.arg<Value>(2);
  const auto& indices = n.arg<std::vector<Value>>(1);
  std::vector<int64_t> dims = int_list(n.arg(3));
  auto healed = [](Value v) { return where(eq(v, 0), constant_like(v, 1), v); };
  auto zeros_of = [](Value v) { return convert(eq(v, 0), DType::Int64); };
  Value others = prim::scatter(healed(x), indices, healed(updates), dims, "mul");
  Value zeros = prim::scatter(zeros_of(x), indices, zeros_of(updates), dims, "add");
  auto slope = [&](Value factor, Value product, Value count) {
    return where(eq(count, zeros_of(factor)), product / healed(factor), zeros_like(factor));
  };
  auto at_updates = [&](Value v) { return prim::gather(v, indices, dims); };
  return {slope(x, others, zeros), slope(updates, at_updates(others), at_updates(zeros))};
}

}  // namespace

void add_indexing_primitives(Table& t) {
  t.prim("gather(Tensor x, Tensor[] indices, int[] dims) -> Tensor")
      .kind(Kind::Gather)
      .any_dtype()
      .batched([](const Node& n, std::span<const Value> in, const std::vector<bool>& mapped, Expr count) {
        std::vector<int64_t> dims = int_list(n.arg(2));
        std::span<const Value> indices = in.subspan(1);
        if (mapped[0]) {
          Mapped m = mapped_indices(indices, mapped, 1, dims, count);
          return std::vector{prim::gather(in[0], m.indices, m.dims)};
        }
        std::vector<Value> each;
        for (size_t i = 0; i < indices.size(); ++i) each.push_back(with_mapped(indices[i], mapped[1 + i], count));
        return std::vector{prim::gather(in[0], each, dims)};
      })
      .doc("Picks along dims with index tensors of one shape S; the result has shape S, then the other dimensions.")
      .type([](const Args& args) {
        const Type& x = operand(args);
        return std::vector<Type>{
            {x.dtype, gathered_shape(x.shape, args[1].get<std::vector<Value>>(), int_list(args[2])), false}};
      })
      .eval([](const Node& n, std::span<const Array* const> in) {
        Array out = result_array(n);
        each_gathered(in[0]->shape, in.subspan(1), int_list(n.arg(2)), [&](int64_t x, int64_t i) {
          if (x < in[0]->numel()) copy_element(out, i, *in[0], x);
        });
        return std::vector<Array>{std::move(out)};
      })
      .transposed([](size_t i, const Node& n, Value ct) {
        if (i != 0) return Value{};
        Value x = n.arg<Value>(0);
        return prim::scatter(zeros_like(x), n.arg<std::vector<Value>>(1), ct, int_list(n.arg(2)), "add");
      });

  t.prim("scatter(Tensor x, Tensor[] indices, Tensor updates, int[] dims, str combine) -> Tensor")
      .kind(Kind::Scatter)
      .any_dtype()
      .batched([](const Node& n, std::span<const Value> in, const std::vector<bool>& mapped, Expr count) {
        Mapped m = mapped_indices(in.subspan(1, in.size() - 2), mapped, 1, int_list(n.arg(3)), count);
        return std::vector{prim::scatter(with_mapped(in.front(), mapped.front(), count), m.indices,
                                         with_mapped(in.back(), mapped.back(), count), m.dims, n.arg<std::string>(4))};
      })
      .jvp([](const Node& n, std::span<const Value> tangents) {
        Value x = n.arg<Value>(0), updates = n.arg<Value>(2), y = n.graph->nodes()[n.id]->out();
        Value tx = or_zeros(tangents.front(), x), tu = or_zeros(tangents.back(), updates);
        const auto& indices = n.arg<std::vector<Value>>(1);
        std::vector<int64_t> dims = int_list(n.arg(3));
        Combiner how = combiner_of(n.arg<std::string>(4));
        if (how == Combiner::Add || how == Combiner::Replace)
          return std::vector{prim::scatter(tx, indices, tu, dims, n.arg<std::string>(4))};
        if (how == Combiner::Mul) {
          Slopes slopes = slopes_of_products(n);
          return std::vector{prim::scatter(tx * slopes.x, indices, tu * slopes.updates, dims, "add")};
        }
        // The mean over all that equal the result.
        Value mine = convert(eq(updates, prim::gather(y, indices, dims)), dtype_of(x)),
              kept = convert(eq(x, y), dtype_of(x));
        Value share = prim::scatter(kept, indices, mine, dims, "add");
        return std::vector{prim::scatter(kept * tx, indices, mine * tu, dims, "add") / share};
      })
      .doc("x with the updates written at, or combined into, the places that gather would read.")
      .type([](const Args& args) {
        const Type &x = operand(args), &updates = operand(args, 2);
        const auto& indices = args[1].get<std::vector<Value>>();
        BRASA_CHECK(updates.dtype == x.dtype && updates.shape == gathered_shape(x.shape, indices, int_list(args[3])),
                    "updates ", updates, " do not fit into ", x, " at indices of shape ", shape_of(indices[0]));
        check_combiner(combiner_of(args[4].get<std::string>()), x.dtype);
        Type t = operand(args);
        t.weak = false;
        return std::vector<Type>{t};
      })
      .eval([](const Node& n, std::span<const Array* const> in) {
        Array out = *in[0];
        const Array& updates = *in.back();
        Combiner how = combiner_of(n.arg<std::string>(4));
        // Reduced floats accumulate in double, and are rounded when all updates are in.
        Array wide = out;
        if (!by_int(out.dtype)) {
          wide = make_array(is_complex(out.dtype) ? DType::Complex128 : DType::Float64, out.shape);
          for (int64_t i = 0; i < out.numel(); ++i) set_complex(wide, i, get_complex(out, i));
        }
        each_gathered(out.shape, in.subspan(1, in.size() - 2), int_list(n.arg(3)), [&](int64_t x, int64_t i) {
          if (x >= out.numel()) return;
          if (by_int(out.dtype))
            set_int(wide, x, combine(how, get_int(wide, x), get_int(updates, i)));
          else if (is_complex(out.dtype))
            set_complex(wide, x, combine(how, get_complex(wide, x), get_complex(updates, i)));
          else
            set(wide, x, combine(how, get(wide, x), get(updates, i)));
        });
        for (int64_t i = 0; i < out.numel(); ++i)
          by_int(out.dtype) ? set_int(out, i, get_int(wide, i)) : set_complex(out, i, get_complex(wide, i));
        return std::vector<Array>{std::move(out)};
      })
      .vjp([](const Node& n, std::span<const Value> cts, const std::vector<bool>&) {
        Value x = n.arg<Value>(0), updates = n.arg<Value>(2), ct = cts[0];
        const auto& indices = n.arg<std::vector<Value>>(1);
        std::vector<int64_t> dims = int_list(n.arg(3));
        const auto& how = n.arg<std::string>(4);
        std::vector<Value> out(2 + indices.size());
        Value picked = prim::gather(ct, indices, dims);
        if (how == "add") {
          out.front() = ct;
          out.back() = picked;
        } else if (how.empty()) {
          Value hole = zeros_like(updates);
          out.front() = prim::scatter(ct, indices, hole, dims, "");
          // Where indices repeat, PyTorch too gives every update the gradient of the place.
          out.back() = picked;
        } else if (how == "max" || how == "min") {
          // The gradient is shared equally among all that equal the result.
          Value y = n.graph->nodes()[n.id]->out();
          Value mine = convert(eq(updates, prim::gather(y, indices, dims)), dtype_of(x));
          Value kept = convert(eq(x, y), dtype_of(x));
          Value share = prim::scatter(kept, indices, mine, dims, "add");
          Value each = ct / share;
          out.front() = kept * each;
          out.back() = mine * prim::gather(each, indices, dims);
        } else {
          Slopes slopes = slopes_of_products(n);
          out.front() = ct * conj(slopes.x);
          out.back() = picked * conj(slopes.updates);
        }
        return out;
      });
}

namespace prim {

Value gather(Value x, const std::vector<Value>& indices, const std::vector<int64_t>& dims) {
  return call("prim::gather", {x, indices, int_arg(dims)});
}
Value scatter(Value x, const std::vector<Value>& indices, Value updates, const std::vector<int64_t>& dims,
              const std::string& combine) {
  return call("prim::scatter", {x, indices, updates, int_arg(dims), combine});
}

}  // namespace prim
}  // namespace brasa::ops
