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

using Dims = std::vector<int64_t>;

// The dimensions of one operand of a dot_general by role.
struct Roles {
  Dims contract, batch, free;
};

Roles roles(const Arg& contract, const Arg& batch, int64_t rank) {
  Roles r{constants(contract.get<std::vector<Expr>>()), constants(batch.get<std::vector<Expr>>()), {}};
  for (int64_t d = 0; d < rank; ++d)
    if (std::find(r.contract.begin(), r.contract.end(), d) == r.contract.end() &&
        std::find(r.batch.begin(), r.batch.end(), d) == r.batch.end())
      r.free.push_back(d);
  return r;
}

Dims counted(int64_t from, size_t n) {
  Dims out(n);
  for (size_t i = 0; i < n; ++i) out[i] = from + static_cast<int64_t>(i);
  return out;
}

// d(a·b)/da: ct [batch, a free, b free] contracted with b over b's free dimensions gives [batch, a free, contracted]; then
// every dimension goes back to its place in a.
Value dot_transposed(size_t i, const Node& n, Value ct) {
  Value a = n.arg<Value>(0), b = n.arg<Value>(1);
  Roles ra = roles(n.arg(2), n.arg(4), rank_of(a)), rb = roles(n.arg(3), n.arg(5), rank_of(b));
  const Roles &mine = i == 0 ? ra : rb, &other = i == 0 ? rb : ra;
  auto batch = static_cast<int64_t>(mine.batch.size());
  int64_t a_free = batch, b_free = batch + static_cast<int64_t>(ra.free.size());
  Dims ct_contract = i == 0 ? counted(b_free, rb.free.size()) : counted(a_free, ra.free.size());
  Value r =
      prim::dot_general(ct, conj(i == 0 ? b : a), ct_contract, other.free, counted(0, mine.batch.size()), other.batch);
  // r: batch, my free, then the other's contracted dimensions in the order of their position there.
  Dims remaining = other.contract;
  std::sort(remaining.begin(), remaining.end());
  Dims order(mine.batch.size() + mine.free.size() + mine.contract.size());
  for (size_t k = 0; k < mine.batch.size(); ++k) order[mine.batch[k]] = static_cast<int64_t>(k);
  for (size_t k = 0; k < mine.free.size(); ++k) order[mine.free[k]] = batch + static_cast<int64_t>(k);
  for (size_t k = 0; k < mine.contract.size(); ++k) {
    auto at = std::find(remaining.begin(), remaining.end(), other.contract[k]) - remaining.begin();
    order[mine.contract[k]] = batch + static_cast<int64_t>(mine.free.size()) + at;
  }
  return prim::transpose(r, order);
}

std::vector<Array> dot_eval(const Node& n, std::span<const Array* const> in) {
  const Array &a = *in[0], &b = *in[1];
  Roles ra = roles(n.arg(2), n.arg(4), static_cast<int64_t>(a.shape.size()));
  Roles rb = roles(n.arg(3), n.arg(5), static_cast<int64_t>(b.shape.size()));
  Array out = result_array(n);
  Dims sa = row_major(a.shape), sb = row_major(b.shape), inner;
  for (int64_t d : ra.contract) inner.push_back(a.shape[d]);
  Dims at(out.shape.size());
  int64_t i = 0;
  bool empty = std::find(inner.begin(), inner.end(), 0) != inner.end();
  if (out.numel() > 0) do {
      int64_t pa = 0, pb = 0;
      size_t d = 0;
      for (size_t k = 0; k < ra.batch.size(); ++k, ++d) {
        pa += at[d] * sa[ra.batch[k]];
        pb += at[d] * sb[rb.batch[k]];
      }
      for (int64_t f : ra.free) pa += at[d++] * sa[f];
      for (int64_t f : rb.free) pb += at[d++] * sb[f];
      std::complex<double> sum = 0;
      int64_t int_sum = 0;
      Dims k(inner.size());
      if (!empty) do {
          int64_t qa = pa, qb = pb;
          for (size_t c = 0; c < k.size(); ++c) {
            qa += k[c] * sa[ra.contract[c]];
            qb += k[c] * sb[rb.contract[c]];
          }
          if (by_int(a.dtype))
            int_sum = combine(Combiner::Add, int_sum, combine(Combiner::Mul, get_int(a, qa), get_int(b, qb)));
          else
            sum += is_complex(a.dtype) ? get_complex(a, qa) * get_complex(b, qb) : get(a, qa) * get(b, qb);
        } while (next_index(k, inner));
      by_int(a.dtype) ? set_int(out, i, int_sum) : set_complex(out, i, sum);
      ++i;
    } while (next_index(at, out.shape));
  return {std::move(out)};
}

// A dimension in front of both is a batch; in front of one it is a free dimension, which goes to the front of the result.
std::vector<Value> dot_batched(const Node& n, std::span<const Value> in, const std::vector<bool>& mapped, Expr) {
  auto moved = [&](size_t arg, bool by) {
    Dims out = constants(n.arg<std::vector<Expr>>(arg));
    for (int64_t& d : out) d += by;
    return out;
  };
  Dims a_contract = moved(2, mapped[0]), b_contract = moved(3, mapped[1]), a_batch = moved(4, mapped[0]),
       b_batch = moved(5, mapped[1]);
  if (mapped[0] && mapped[1]) {
    a_batch.insert(a_batch.begin(), 0);
    b_batch.insert(b_batch.begin(), 0);
    return {prim::dot_general(in[0], in[1], a_contract, b_contract, a_batch, b_batch)};
  }
  Value r = prim::dot_general(in[0], in[1], a_contract, b_contract, a_batch, b_batch);
  auto batch = static_cast<int64_t>(a_batch.size());
  int64_t at = mapped[0] ? batch : rank_of(in[0]) - static_cast<int64_t>(a_contract.size());
  Dims order = counted(0, static_cast<size_t>(rank_of(r)));
  order.erase(order.begin() + at);
  order.insert(order.begin(), at);
  return {prim::transpose(r, order)};
}

struct Convolution {
  std::vector<Expr> stride, low, high, x_dilation, w_dilation;
  Expr groups;
  explicit Convolution(const Args& args)
      : stride(args[2].get<std::vector<Expr>>()),
        low(args[3].get<std::vector<Expr>>()),
        high(args[4].get<std::vector<Expr>>()),
        x_dilation(args[5].get<std::vector<Expr>>()),
        w_dilation(args[6].get<std::vector<Expr>>()),
        groups(args[7].get<Expr>()) {}
};

Expr dilated(Expr size, Expr dilation) { return dilation.is(1) ? size : (size - 1) * dilation + 1; }
// Of nothing there are no gaps, as in prim::pad.
Expr dilated_data(Expr size, Expr dilation) { return dilation.is(1) ? size : ir::max(dilated(size, dilation), 0); }

// [a, g * b, …] -> [b, g * a, …] (group major), for exchanging features and batch, or outputs and inputs, of each group.
Value exchange_grouped(Value v, Expr groups) {
  Shape s = shape_of(v);
  Shape split = {s[0], groups, ir::floordiv(s[1], groups)};
  split.insert(split.end(), s.begin() + 2, s.end());
  Dims order = {2, 1, 0};
  for (size_t d = 3; d < split.size(); ++d) order.push_back(static_cast<int64_t>(d));
  Shape merged = {split[2], groups * s[0]};
  merged.insert(merged.end(), s.begin() + 2, s.end());
  return prim::reshape(prim::transpose(prim::reshape(v, split), order), merged);
}

// With respect to x: the cotangent, spread by the stride, convolved with the flipped kernel whose inputs and outputs are
// exchanged. With respect to w: x convolved with the cotangent as kernel, batch taking the place of the features.
Value convolution_transposed(size_t i, const Node& n, Value ct) {
  Value x = conj(n.arg<Value>(0)), w = conj(n.arg<Value>(1));
  Convolution c(n.args);
  size_t spatial = c.stride.size();
  std::vector<Expr> low(spatial), high(spatial);
  for (size_t d = 0; d < spatial; ++d) {
    Expr ks = dilated(size_of(w, d + 2), c.w_dilation[d]);
    if (i == 0) {
      Expr xs = dilated(size_of(x, d + 2), c.x_dilation[d]), cs = dilated_data(size_of(ct, d + 2), c.stride[d]);
      low[d] = ks - 1 - c.low[d];
      // The result must have x's (dilated) size: low + cs + high - ks + 1 = xs.
      high[d] = xs + ks - 1 - low[d] - cs;
    } else {
      Expr xs = dilated_data(size_of(x, d + 2), c.x_dilation[d]), cs = dilated(size_of(ct, d + 2), c.stride[d]);
      low[d] = c.low[d];
      high[d] = ks + cs - 1 - xs - c.low[d];
    }
  }
  std::vector<int64_t> spatial_dims = counted(2, spatial);
  if (i == 0) {
    // w [g * O, C, …] -> [g * C, O, …], flipped.
    Shape s = shape_of(w);
    Shape split = {c.groups, ir::floordiv(s[0], c.groups)};
    split.insert(split.end(), s.begin() + 1, s.end());
    Dims order = {0, 2, 1};
    for (size_t d = 3; d < split.size(); ++d) order.push_back(static_cast<int64_t>(d));
    Shape merged = {c.groups * s[1], split[1]};
    merged.insert(merged.end(), s.begin() + 2, s.end());
    Value flipped = prim::reverse(prim::reshape(prim::transpose(prim::reshape(w, split), order), merged), spatial_dims);
    return prim::convolution(ct, flipped, c.x_dilation, low, high, c.stride, c.w_dilation, c.groups);
  }
  Value features = exchange_grouped(x, c.groups);  // [C, g * N, …]
  Value kernel = transpose(ct, 0, 1);              // [g * O, N, …]
  Value r = prim::convolution(features, kernel, c.w_dilation, low, high, c.x_dilation, c.stride, c.groups);
  return transpose(r, 0, 1);
}

// Dimension `from` of x becomes dimension `to`; the others keep their order.
Value moved(Value x, int64_t from, int64_t to) {
  Dims order = counted(0, static_cast<size_t>(rank_of(x)));
  order.erase(order.begin() + from);
  order.insert(order.begin() + to, from);
  return prim::transpose(x, order);
}
// Dimensions d and d + 1 as one.
Value merged(Value x, int64_t d) {
  Shape s = shape_of(x);
  s[d] = s[d] * s[d + 1];
  s.erase(s.begin() + d + 1);
  return prim::reshape(x, s);
}
Value split(Value x, int64_t d, Expr outer) {
  Shape s = shape_of(x);
  Expr inner = ir::floordiv(s[d], outer);
  s[d] = outer;
  s.insert(s.begin() + d + 1, inner);
  return prim::reshape(x, s);
}

// Of x alone: more samples. Of w alone: more outputs in each group. Of both: more groups.
std::vector<Value> convolution_batched(const Node& n, std::span<const Value> in, const std::vector<bool>& mapped,
                                       Expr count) {
  Convolution c(n.args);
  auto convolved = [&](Value x, Value w, Expr groups) {
    return prim::convolution(x, w, c.stride, c.low, c.high, c.x_dilation, c.w_dilation, groups);
  };
  if (mapped[0] && !mapped[1]) return {split(convolved(merged(in[0], 0), in[1], c.groups), 0, count)};
  if (!mapped[0]) {
    Value w = merged(merged(moved(split(in[1], 1, c.groups), 0, 1), 0), 0);  // [groups * count * outputs, …]
    Value y = split(split(convolved(in[0], w, c.groups), 1, c.groups), 2, count);
    return {merged(moved(y, 2, 0), 2)};
  }
  Value y = convolved(merged(moved(in[0], 0, 1), 1), merged(in[1], 0), count * c.groups);
  return {moved(split(y, 1, count), 1, 0)};
}

std::vector<Array> convolution_eval(const Node& n, std::span<const Array* const> in) {
  const Array &x = *in[0], &w = *in[1];
  Dims stride = int_args(n, 2), low = int_args(n, 3), xd = int_args(n, 5), wd = int_args(n, 6);
  int64_t groups = n.arg<Expr>(7).constant(), channels = w.shape[1];
  Array out = result_array(n);
  Dims sx = row_major(x.shape), sw = row_major(w.shape), kernel(w.shape.begin() + 2, w.shape.end());
  int64_t per_group = groups == 0 ? 0 : w.shape[0] / groups;
  Dims at(out.shape.size());
  int64_t i = 0;
  bool empty = std::find(kernel.begin(), kernel.end(), 0) != kernel.end();
  if (out.numel() > 0) do {
      std::complex<double> sum = 0;
      int64_t int_sum = 0;
      int64_t group = at[1] / per_group;
      for (int64_t c = 0; c < channels; ++c) {
        Dims k(kernel.size());
        if (!empty) do {
            int64_t px = at[0] * sx[0] + (group * channels + c) * sx[1], pw = at[1] * sw[0] + c * sw[1];
            bool inside = true;
            for (size_t d = 0; d < k.size(); ++d) {
              int64_t p = at[d + 2] * stride[d] + k[d] * wd[d] - low[d];
              inside = inside && p >= 0 && p % xd[d] == 0 && p / xd[d] < x.shape[d + 2];
              px += p / xd[d] * sx[d + 2];
              pw += k[d] * sw[d + 2];
            }
            if (!inside) continue;
            if (by_int(x.dtype))
              int_sum = combine(Combiner::Add, int_sum, combine(Combiner::Mul, get_int(x, px), get_int(w, pw)));
            else
              sum += is_complex(x.dtype) ? get_complex(x, px) * get_complex(w, pw) : get(x, px) * get(w, pw);
          } while (next_index(k, kernel));
      }
      by_int(x.dtype) ? set_int(out, i, int_sum) : set_complex(out, i, sum);
      ++i;
    } while (next_index(at, out.shape));
  return {std::move(out)};
}

}  // namespace

void add_contraction_primitives(Table& t) {
  t.prim("dot_general(Tensor a, Tensor b, int[] a_contract, int[] b_contract, int[] a_batch, int[] b_batch) -> Tensor")
      .kind(Kind::Dot)
      .doc("Sum of products over the contracted dimensions: batch, then a's free dimensions, then b's.")
      .type([](const Args& args) {
        const Type &a = operand(args, 0), &b = operand(args, 1);
        BRASA_CHECK(a.dtype == b.dtype, "cannot multiply two dtypes: ", a, " and ", b);
        for (size_t side : {2, 4}) {
          std::vector<int64_t> da = constants(args[side].get<std::vector<Expr>>()),
                               db = constants(args[side + 1].get<std::vector<Expr>>());
          BRASA_CHECK(da.size() == db.size(), "as many dimensions of ", a, " as of ", b, " were expected, got ", da,
                      " and ", db);
          for (size_t i = 0; i < da.size(); ++i)
            BRASA_CHECK(may_equal(a.shape[da[i]], b.shape[db[i]]), "shapes cannot be multiplied: ", a, " and ", b);
        }
        Roles ra = roles(args[2], args[4], a.rank()), rb = roles(args[3], args[5], b.rank());
        Shape shape;
        for (int64_t d : ra.batch) shape.push_back(a.shape[d]);
        for (int64_t d : ra.free) shape.push_back(a.shape[d]);
        for (int64_t d : rb.free) shape.push_back(b.shape[d]);
        return std::vector<Type>{{a.dtype, shape, false}};
      })
      .eval(dot_eval)
      .transposed(dot_transposed, Linear::Each)
      .batched(dot_batched);
  t.prim(
       "convolution(Tensor x, Tensor w, SymInt[] stride, SymInt[] pad_low, SymInt[] pad_high, SymInt[] x_dilation, "
       "SymInt[] w_dilation, SymInt groups) -> Tensor")
      .kind(Kind::Convolution)
      .doc("Cross-correlation over any number of spatial dimensions; paddings may be negative.")
      .type([](const Args& args) {
        const Type &x = operand(args, 0), &w = operand(args, 1);
        for (size_t list = 2; list < 7; ++list)
          BRASA_CHECK(x.rank() >= 2 && static_cast<int64_t>(args[list].get<Shape>().size()) == x.rank() - 2,
                      "expected a number for each of the last dimensions of ", x, ", got ", args[list].get<Shape>());
        BRASA_CHECK(x.dtype == w.dtype && x.rank() == w.rank(), "cannot convolve ", x, " with ", w);
        Convolution c(args);
        auto positive = [](Expr e) { return !e.is_constant() || e.constant() > 0; };
        for (const auto* list : {&c.stride, &c.x_dilation, &c.w_dilation})
          BRASA_CHECK(positive(c.groups) && std::all_of(list->begin(), list->end(), positive),
                      "expected strides, dilations and groups of at least 1, got ", *list, " and ", c.groups);
        BRASA_CHECK(may_equal(x.shape[1], w.shape[1] * c.groups) && may_equal(ir::mod(w.shape[0], c.groups), 0),
                    "cannot convolve ", x, " with ", w, " in ", c.groups, " groups");
        Shape shape = {x.shape[0], w.shape[0]};
        for (size_t d = 0; d < c.stride.size(); ++d) {
          Expr space = dilated_data(x.shape[d + 2], c.x_dilation[d]) + c.low[d] + c.high[d];
          shape.push_back(ir::floordiv(space - dilated(w.shape[d + 2], c.w_dilation[d]), c.stride[d]) + 1);
        }
        return std::vector<Type>{{x.dtype, shape, false}};
      })
      .eval(convolution_eval)
      .transposed(convolution_transposed, Linear::Each)
      .batched(convolution_batched);
}

namespace prim {

Value dot_general(Value a, Value b, const Dims& a_contract, const Dims& b_contract, const Dims& a_batch,
                  const Dims& b_batch) {
  return call("prim::dot_general",
              {a, b, int_arg(a_contract), int_arg(b_contract), int_arg(a_batch), int_arg(b_batch)});
}
Value convolution(Value x, Value w, const std::vector<Expr>& stride, const std::vector<Expr>& pad_low,
                  const std::vector<Expr>& pad_high, const std::vector<Expr>& x_dilation,
                  const std::vector<Expr>& w_dilation, Expr groups) {
  return call("prim::convolution", {x, w, stride, pad_low, pad_high, x_dilation, w_dilation, groups});
}

}  // namespace prim
}  // namespace brasa::ops
