#include <algorithm>

#include "ops/algebra.h"
#include "ops/bounds.h"
#include "ops/index.h"
#include "ops/primitives/families.h"
#include "ops/primitives/interp.h"
#include "ops/primitives/rules.h"
#include "ops/shapes.h"
#include "support/checked.h"
#include "support/error.h"

namespace brasa::ops {
namespace {

void check_per_dimension(const Type& x, const Shape& numbers) {
  BRASA_CHECK(static_cast<int64_t>(numbers.size()) == x.rank(), "expected a number for each dimension of ", x, ", got ",
              numbers);
}

std::vector<int64_t> int_list(const Arg& a) { return constants(a.get<std::vector<Expr>>()); }

std::vector<int64_t> inverse(const std::vector<int64_t>& permutation) {
  std::vector<int64_t> out(permutation.size());
  for (size_t i = 0; i < permutation.size(); ++i) out[permutation[i]] = static_cast<int64_t>(i);
  return out;
}

// dims of an operand as those of one with one more dimension in front; with it as the first of them if `whole`.
std::vector<int64_t> dims_behind(const std::vector<int64_t>& dims, bool whole) {
  std::vector<int64_t> out;
  if (whole) out.push_back(0);
  for (int64_t d : dims) out.push_back(d + 1);
  return out;
}

// What is known to be 1 is not compared, which would leave a fact.
bool may_repeat(Expr from, Expr to) {
  Builder* builder = Builder::current_or_null();
  if (from == to || (builder ? builder->facts().known(from) : from).is(1)) return true;
  return may_equal(from, to) || may_equal(from, 1);
}

void add_broadcast(Table& t) {
  t.prim("broadcast(Tensor x, SymInt[] size, int[] dims) -> Tensor")
      .kind(Kind::Broadcast)
      .batched([](const Node& n, std::span<const Value> in, const std::vector<bool>&, Expr count) {
        return std::vector{
            prim::broadcast(in[0], behind(count, n.arg<Shape>(1)), dims_behind(int_list(n.arg(2)), true))};
      })
      .doc(
          "Operand dimension i becomes result dimension dims[i], repeated if its size is 1. Operand dimensions that go to one "
          "result dimension give their diagonal.")
      .type([](const Args& args) {
        const Type& x = operand(args);
        const auto& shape = args[1].get<Shape>();
        std::vector<int64_t> dims = int_list(args[2]);
        bool fits = static_cast<int64_t>(dims.size()) == x.rank();
        for (size_t i = 0; fits && i < dims.size(); ++i) fits = may_repeat(x.shape[i], shape[dims[i]]);
        BRASA_CHECK(fits, "cannot repeat ", x, " in the shape ", shape);
        return typed(x, shape);
      })
      .eval([](const Node& n, std::span<const Array* const> in) {
        std::vector<int64_t> dims = int_list(n.arg(2)), strides = row_major(in[0]->shape);
        return std::vector{rearranged(n, *in[0], [&](const std::vector<int64_t>& at) {
          int64_t s = 0;
          for (size_t i = 0; i < dims.size(); ++i) s += in[0]->shape[i] == 1 ? 0 : at[dims[i]] * strides[i];
          return s;
        })};
      })
      .transposed([](size_t, const Node& n, Value ct) {
        const Shape& from = shape_of(n.arg<Value>(0));
        const Shape& to = n.types[0].shape;
        std::vector<int64_t> dims = int_list(n.arg(2)), reduced, firsts, copies;
        for (size_t i = 0; i < dims.size(); ++i)
          (std::find(dims.begin(), dims.begin() + i, dims[i]) == dims.begin() + i ? firsts : copies).push_back(i);
        for (size_t d = 0; d < to.size(); ++d) {
          auto it = std::find(dims.begin(), dims.end(), static_cast<int64_t>(d));
          bool repeated =
              it == dims.end() || (!(from[it - dims.begin()] == to[d]) && !same_size(from[it - dims.begin()], to[d]));
          if (repeated) reduced.push_back(static_cast<int64_t>(d));
        }
        Value summed = sum(ct, reduced);
        if (copies.empty()) return prim::reshape(summed, from);
        // A diagonal's cotangent lies on the diagonal, among zeros.
        Shape distinct;
        for (int64_t i : firsts) distinct.push_back(from[i]);
        Value spread = prim::broadcast(prim::reshape(summed, distinct), from, firsts);
        Value on = full(true, from, DType::Bool);
        for (int64_t i : copies) {
          int64_t first = std::find(dims.begin(), dims.end(), dims[i]) - dims.begin();
          on = logical_and(on, eq(prim::iota(from, first, DType::Int64), prim::iota(from, i, DType::Int64)));
        }
        return prim::select(on, spread, zeros_like(spread));
      })
      .index_rule([](const Node& n, const Index& index) {
        const Shape& in = shape_of(n.arg<Value>(0));
        std::vector<int64_t> dims = int_list(n.arg(2));
        Index out(in.size());
        for (size_t i = 0; i < dims.size(); ++i) out[i] = in[i].is(1) ? Expr(0) : index[dims[i]];
        return out;
      })
      .view_rule([](const Args& args, const Strided& in) -> std::optional<Strided> {
        Strided out{int_list(args[1]), {}, in.offset};
        std::vector<int64_t> dims = int_list(args[2]);
        out.strides.assign(out.sizes.size(), 0);
        for (size_t i = 0; i < dims.size(); ++i)
          if (in.sizes[i] == out.sizes[dims[i]]) out.strides[dims[i]] += in.strides[i];
        return out;
      });
}

// The strides that give `sizes` over the same elements in the same order, if some do.
std::optional<std::vector<int64_t>> reshaped_strides(const Strided& in, const std::vector<int64_t>& sizes) {
  int64_t numel = 1;
  for (int64_t s : in.sizes) numel = checked_mul(numel, s);
  if (numel == 0) {
    std::vector<int64_t> r(sizes.size());
    int64_t run = 1;
    for (size_t i = sizes.size(); i-- > 0;) {
      r[i] = run;
      run = checked_mul(run, std::max<int64_t>(sizes[i], 1));
    }
    return in.sizes == sizes ? in.strides : r;
  }
  // Runs of source dimensions that step evenly are one chunk; each takes a suffix of the result's dimensions.
  std::vector<int64_t> out(sizes.size());
  auto to = static_cast<int64_t>(sizes.size()) - 1;
  int64_t chunk_stride = in.strides.empty() ? 1 : in.strides.back(), chunk = 1, taken = 1;
  for (auto d = static_cast<int64_t>(in.sizes.size()) - 1; d >= 0; --d) {
    chunk *= in.sizes[d];
    bool ends = d == 0 || (in.sizes[d - 1] != 1 && in.strides[d - 1] != chunk * chunk_stride);
    if (!ends) continue;
    while (to >= 0 && (taken < chunk || sizes[to] == 1)) {
      out[to] = taken * chunk_stride;
      taken *= sizes[to--];
    }
    if (taken != chunk) return std::nullopt;
    if (d > 0) {
      chunk_stride = in.strides[d - 1];
      chunk = taken = 1;
    }
  }
  for (; to >= 0; --to) {
    if (sizes[to] != 1) return std::nullopt;
    out[to] = to + 1 < static_cast<int64_t>(sizes.size()) ? out[to + 1] * sizes[to + 1] : 1;
  }
  return out;
}

void add_reshape(Table& t) {
  t.prim("reshape(Tensor x, SymInt[] size) -> Tensor")
      .kind(Kind::Reshape)
      .dense()
      .batched([](const Node& n, std::span<const Value> in, const std::vector<bool>&, Expr count) {
        return std::vector{prim::reshape(in[0], behind(count, n.arg<Shape>(1)))};
      })
      .doc("The same elements in row-major order.")
      .type([](const Args& args) {
        const Type& x = operand(args);
        const auto& shape = args[1].get<Shape>();
        BRASA_CHECK(may_equal(x.numel(), ir::product(shape)), "the elements of ", x, " do not fill the shape ", shape);
        return typed(x, shape);
      })
      .eval([](const Node& n, std::span<const Array* const> in) {
        Array out = *in[0];
        out.shape = result_shape(n);
        BRASA_ASSERT(out.numel() == in[0]->numel(), "reshape of ", in[0]->shape, " to ", out.shape);
        return std::vector<Array>{std::move(out)};
      })
      .transposed([](size_t, const Node& n, Value ct) { return prim::reshape(ct, shape_of(n.arg<Value>(0))); })
      .index_rule([](const Node& n, const Index& index) {
        return reshaped(index, n.types[0].shape, shape_of(n.arg<Value>(0)));
      })
      .view_rule([](const Args& args, const Strided& in) -> std::optional<Strided> {
        std::vector<int64_t> sizes = int_list(args[1]);
        auto strides = reshaped_strides(in, sizes);
        if (!strides) return std::nullopt;
        return Strided{std::move(sizes), std::move(*strides), in.offset};
      });

  t.prim("transpose(Tensor x, int[] dims) -> Tensor")
      .kind(Kind::Transpose)
      .dense()
      .batched([](const Node& n, std::span<const Value> in, const std::vector<bool>&, Expr) {
        return std::vector{prim::transpose(in[0], dims_behind(int_list(n.arg(1)), true))};
      })
      .doc("Result dimension i is operand dimension dims[i].")
      .type([](const Args& args) {
        const Type& x = operand(args);
        std::vector<int64_t> dims = int_list(args[1]), sorted = dims;
        std::sort(sorted.begin(), sorted.end());
        BRASA_CHECK(sorted == counted(0, x.rank()), "transpose: ", dims, " is no order of the dimensions of ", x);
        Shape shape;
        for (int64_t d : dims) shape.push_back(x.shape[d]);
        return typed(x, std::move(shape));
      })
      .eval([](const Node& n, std::span<const Array* const> in) {
        std::vector<int64_t> dims = int_list(n.arg(1)), strides = row_major(in[0]->shape);
        return std::vector{rearranged(n, *in[0], [&](const std::vector<int64_t>& at) {
          int64_t s = 0;
          for (size_t i = 0; i < dims.size(); ++i) s += at[i] * strides[dims[i]];
          return s;
        })};
      })
      .transposed([](size_t, const Node& n, Value ct) { return prim::transpose(ct, inverse(int_list(n.arg(1)))); })
      .index_rule([](const Node& n, const Index& index) {
        std::vector<int64_t> dims = int_list(n.arg(1));
        Index out(dims.size());
        for (size_t i = 0; i < dims.size(); ++i) out[dims[i]] = index[i];
        return out;
      })
      .view_rule([](const Args& args, const Strided& in) -> std::optional<Strided> {
        Strided out{{}, {}, in.offset};
        for (int64_t d : int_list(args[1])) {
          out.sizes.push_back(in.sizes[d]);
          out.strides.push_back(in.strides[d]);
        }
        return out;
      });

  t.prim("reverse(Tensor x, int[] dims) -> Tensor")
      .kind(Kind::Reverse)
      .dense()
      .batched([](const Node& n, std::span<const Value> in, const std::vector<bool>&, Expr) {
        return std::vector{prim::reverse(in[0], dims_behind(int_list(n.arg(1)), false))};
      })
      .doc("Counts these dimensions from their ends.")
      .type([](const Args& args) { return typed(operand(args), operand(args).shape); })
      .eval([](const Node& n, std::span<const Array* const> in) {
        std::vector<int64_t> dims = int_list(n.arg(1)), strides = row_major(in[0]->shape);
        return std::vector{rearranged(n, *in[0], [&](std::vector<int64_t> at) {
          for (int64_t d : dims) at[d] = in[0]->shape[d] - 1 - at[d];
          int64_t s = 0;
          for (size_t i = 0; i < at.size(); ++i) s += at[i] * strides[i];
          return s;
        })};
      })
      .index_rule([](const Node& n, const Index& index) {
        const Shape& in = shape_of(n.arg<Value>(0));
        Index out = index;
        for (int64_t d : int_list(n.arg(1))) out[d] = in[d] - 1 - index[d];
        return out;
      })
      .transposed([](size_t, const Node& n, Value ct) { return prim::reverse(ct, int_list(n.arg(1))); });
}

void add_slice_and_pad(Table& t) {
  t.prim("slice(Tensor x, SymInt[] start, SymInt[] size, SymInt[] step) -> Tensor")
      .kind(Kind::Slice)
      .batched([](const Node& n, std::span<const Value> in, const std::vector<bool>&, Expr count) {
        return std::vector{
            prim::slice(in[0], behind(0, n.arg<Shape>(1)), behind(count, n.arg<Shape>(2)), behind(1, n.arg<Shape>(3)))};
      })
      .doc("Elements start + i * step, i < size, in every dimension.")
      .special("step", short_steps())
      .type([](const Args& args) {
        const Type& x = operand(args);
        const auto &start = args[1].get<Shape>(), &size = args[2].get<Shape>(), &step = args[3].get<Shape>();
        for (const Shape* list : {&start, &size, &step}) check_per_dimension(x, *list);
        for (size_t d = 0; d < size.size(); ++d) {
          Expr last = start[d] + (size[d] - 1) * step[d];
          bool empty = !size[d].is_constant() || size[d].constant() <= 0;
          bool known = last.is_constant() && start[d].is_constant() && x.shape[d].is_constant();
          BRASA_CHECK(empty || !known || (start[d].constant() >= 0 && last.constant() < x.shape[d].constant()),
                      "elements ", start[d], " to ", last, " of dimension ", d, " of ", x, " do not exist");
        }
        return typed(x, size);
      })
      .eval([](const Node& n, std::span<const Array* const> in) {
        std::vector<int64_t> start = int_args(n, 1), step = int_args(n, 3), strides = row_major(in[0]->shape);
        return std::vector{rearranged(n, *in[0], [&](const std::vector<int64_t>& at) {
          int64_t s = 0;
          for (size_t i = 0; i < at.size(); ++i) s += (start[i] + at[i] * step[i]) * strides[i];
          return s;
        })};
      })
      .transposed([](size_t, const Node& n, Value ct) {
        return prim::zeros_around(ct, n.arg<Shape>(1), n.arg<Shape>(3), shape_of(n.arg<Value>(0)));
      })
      .index_rule([](const Node& n, const Index& index) {
        const auto &start = n.arg<std::vector<Expr>>(1), &step = n.arg<std::vector<Expr>>(3);
        Index out(index.size());
        for (size_t i = 0; i < out.size(); ++i) out[i] = start[i] + index[i] * step[i];
        return out;
      })
      .view_rule([](const Args& args, const Strided& in) -> std::optional<Strided> {
        std::vector<int64_t> start = int_list(args[1]), step = int_list(args[3]);
        Strided out{int_list(args[2]), in.strides, in.offset};
        for (size_t d = 0; d < start.size(); ++d) {
          out.offset = checked_add(out.offset, checked_mul(start[d], in.strides[d]));
          // The stride of one element is never used.
          if (out.sizes[d] > 1) out.strides[d] = checked_mul(out.strides[d], step[d]);
        }
        return out;
      });

  t.prim("pad(Tensor x, Tensor value, SymInt[] low, SymInt[] high, SymInt[] interior) -> Tensor")
      .kind(Kind::Pad)
      .any_dtype()
      .batched([](const Node& n, std::span<const Value> in, const std::vector<bool>& mapped, Expr count) {
        auto padded = [&](Value x, Value value, bool whole) {
          auto list = [&](size_t i) { return whole ? behind(0, n.arg<Shape>(i)) : n.arg<Shape>(i); };
          return prim::pad(x, value, list(2), list(3), list(4));
        };
        if (!mapped[1]) return std::vector{padded(in[0], in[1], true)};
        // Its own value for each: chosen where the padding of a mask shows.
        Value x = in[0];
        Shape shape = behind(count, n.types[0].shape);
        Value inside = padded(full(true, shape_of(n.arg<Value>(0)), DType::Bool), scalar(false, DType::Bool), false);
        Value wide = padded(x, scalar(0, dtype_of(x)), mapped[0]);
        return std::vector{
            prim::select(broadcast_to(inside, shape), broadcast_to(wide, shape), prim::broadcast(in[1], shape, {0}))};
      })
      .doc("Copies of a rank-0 value before, after and between the elements.")
      .special("interior", {0})
      .type([](const Args& args) {
        Shape shape = operand(args).shape;
        for (size_t list : {2, 3, 4}) check_per_dimension(operand(args), args[list].get<Shape>());
        for (size_t d = 0; d < shape.size(); ++d) {
          Expr gaps = args[4].get<std::vector<Expr>>()[d];
          Expr inner = gaps.is(0) ? shape[d] : ir::max(shape[d] + (shape[d] - 1) * gaps, 0);
          shape[d] = args[2].get<std::vector<Expr>>()[d] + inner + args[3].get<std::vector<Expr>>()[d];
        }
        return typed(operand(args), std::move(shape));
      })
      .eval([](const Node& n, std::span<const Array* const> in) {
        std::vector<int64_t> low = int_args(n, 2), interior = int_args(n, 4), strides = row_major(in[0]->shape);
        Array out = result_array(n);
        for (int64_t i = 0; i < out.numel(); ++i) copy_element(out, i, *in[1], 0);
        std::vector<int64_t> at(low.size()), to = row_major(out.shape);
        int64_t i = 0;
        if (in[0]->numel() > 0) do {
            int64_t s = 0;
            for (size_t d = 0; d < at.size(); ++d) s += (low[d] + at[d] * (1 + interior[d])) * to[d];
            copy_element(out, s, *in[0], i++);
          } while (next_index(at, in[0]->shape));
        return std::vector<Array>{std::move(out)};
      })
      .transposed([](size_t i, const Node& n, Value ct) {
        Value x = n.arg<Value>(0);
        const auto &low = n.arg<std::vector<Expr>>(2), &interior = n.arg<std::vector<Expr>>(4);
        std::vector<Expr> step;
        for (Expr e : interior) step.push_back(e + 1);
        Value inside = prim::slice(ct, low, shape_of(x), step);
        if (i == 0) return inside;
        std::vector<int64_t> all = reduced_dims(std::nullopt, rank_of(ct));
        return sum(ct, all) - sum(inside, all);
      });

  t.prim("concat(Tensor[] xs, int dim) -> Tensor")
      .kind(Kind::Concat)
      .any_dtype()
      .batched([](const Node& n, std::span<const Value> in, const std::vector<bool>& mapped, Expr count) {
        std::vector<Value> xs;
        for (size_t i = 0; i < in.size(); ++i)
          xs.push_back(mapped[i] ? in[i] : broadcast_to(in[i], behind(count, shape_of(in[i]))));
        return std::vector{prim::concat(xs, n.arg<Expr>(1).constant() + 1)};
      })
      .doc("One after the other along a dimension.")
      .type([](const Args& args) {
        const auto& xs = args[0].get<std::vector<Value>>();
        Type t = ir::type_of(xs.at(0));
        size_t dim = args[1].get<Expr>().constant();
        for (size_t i = 1; i < xs.size(); ++i) {
          BRASA_CHECK(ir::type_of(xs[i]).dtype == t.dtype, "cannot put ", t, " and ", ir::type_of(xs[i]),
                      " behind one another: two dtypes");
          const Shape& more = ir::type_of(xs[i]).shape;
          for (size_t d = 0; d < t.shape.size(); ++d)
            BRASA_CHECK(more.size() == t.shape.size() && (d == dim || may_equal(t.shape[d], more[d])), "cannot put ", t,
                        " and ", ir::type_of(xs[i]), " behind one another along dimension ", dim);
          t.shape[dim] = t.shape[dim] + more[dim];
        }
        return typed(t, t.shape);
      })
      .eval([](const Node& n, std::span<const Array* const> in) {
        Array out = result_array(n);
        int64_t dim = n.arg<Expr>(1).constant(), start = 0;
        std::vector<int64_t> to = row_major(out.shape);
        for (const Array* x : in) {
          std::vector<int64_t> at(x->shape.size());
          int64_t i = 0;
          if (x->numel() > 0) do {
              int64_t s = start * to[dim];
              for (size_t d = 0; d < at.size(); ++d) s += at[d] * to[d];
              copy_element(out, s, *x, i++);
            } while (next_index(at, x->shape));
          start += x->shape[dim];
        }
        return std::vector<Array>{std::move(out)};
      })
      .transposed([](size_t i, const Node& n, Value ct) {
        const auto& xs = n.arg<std::vector<Value>>(0);
        int64_t dim = n.arg<Expr>(1).constant();
        Expr start(0);
        for (size_t k = 0; k < i; ++k) start = start + size_of(xs[k], dim);
        return narrow(ct, dim, start, size_of(xs[i], dim));
      });
}

void add_later(Table& t) {
  t.prim("later(Tensor x, Tensor after) -> Tensor")
      .kind(Kind::Later)
      .any_dtype()
      .doc(
          "x itself, read when `after` is there: what is made of it is not made of x a first time, and does not lie in memory until then "
          "(transforms/recompute.h).")
      .type([](const Args& args) { return typed(operand(args), operand(args).shape); })
      .eval([](const Node&, std::span<const Array* const> in) { return std::vector{*in[0]}; })
      .transposed([](size_t k, const Node& n, Value ct) { return k == 0 ? ct : zeros_like(n.arg<Value>(1)); })
      .batched([](const Node&, std::span<const Value> in, const std::vector<bool>& mapped, Expr count) {
        Value x = mapped[0] ? in[0] : broadcast_to(in[0], behind(count, shape_of(in[0])));
        return std::vector{call("prim::later", {x, in[1]})};
      })
      .index_rule([](const Node&, const Index& index) { return index; })
      .view_rule([](const Args&, const Strided& in) -> std::optional<Strided> { return in; });
}

bool is_iota(const std::vector<int64_t>& dims) {
  for (size_t i = 0; i < dims.size(); ++i)
    if (dims[i] != static_cast<int64_t>(i)) return false;
  return true;
}

}  // namespace

void add_movement_primitives(Table& t) {
  add_broadcast(t);
  add_reshape(t);
  add_slice_and_pad(t);
  add_window(t);
  add_later(t);
}

namespace prim {

Value broadcast(Value x, const Shape& shape, const std::vector<int64_t>& dims) {
  if (shape_of(x) == shape && is_iota(dims)) return x;
  return call("prim::broadcast", {x, shape, int_arg(dims)});
}
Value reshape(Value x, const Shape& shape) {
  if (shape_of(x) == shape) return x;
  return call("prim::reshape", {x, shape});
}
Value transpose(Value x, const std::vector<int64_t>& dims) {
  if (is_iota(dims)) return x;
  return call("prim::transpose", {x, int_arg(dims)});
}
Value slice(Value x, const std::vector<Expr>& start, const Shape& size, const std::vector<Expr>& step) {
  if (size == shape_of(x)) return x;  // nothing else fits
  return call("prim::slice", {x, start, size, step});
}
Value pad(Value x, Value value, const std::vector<Expr>& low, const std::vector<Expr>& high,
          const std::vector<Expr>& interior) {
  auto none = [](const std::vector<Expr>& v) {
    return std::all_of(v.begin(), v.end(), [](Expr e) { return e.is(0); });
  };
  if (none(low) && none(high) && none(interior)) return x;
  return call("prim::pad", {x, value, low, high, interior});
}
Value zeros_around(Value part, const std::vector<Expr>& start, const std::vector<Expr>& step, const Shape& whole) {
  const Shape& size = shape_of(part);
  std::vector<Expr> high, interior;
  for (size_t d = 0; d < whole.size(); ++d) {
    // As pad's type says it, so that the sizes are the same expressions.
    Expr gaps = step[d] - 1, covered = gaps.is(0) ? size[d] : ir::max(size[d] + (size[d] - 1) * gaps, 0);
    high.push_back(whole[d] - start[d] - covered);
    interior.push_back(gaps);
  }
  return pad(part, scalar(0, dtype_of(part)), start, high, interior);
}
Value concat(const std::vector<Value>& xs, int64_t dim) {
  if (xs.size() == 1) return xs[0];
  return call("prim::concat", {xs, dim});
}
Value reverse(Value x, const std::vector<int64_t>& dims) {
  if (dims.empty()) return x;
  return call("prim::reverse", {x, int_arg(dims)});
}

}  // namespace prim
}  // namespace brasa::ops
