#include "ops/rows.h"
#include "ops/shapes.h"
#include "support/error.h"

// Max pooling over windows of one size whose distances vary at random (Graham 2014).
namespace brasa::ops {
namespace {

// Where the windows along a dimension start, for each plane's random number u [N, C]:
// int((i + u) α) - int(u α) with α = (size - kernel) / (windows - 1); the last window touches the end. [N, C, windows]
Value window_starts(Value u, Expr size, Expr windows, Expr kernel) {
  DType t = dtype_of(u);
  Shape shape = shape_of(u);
  shape.push_back(windows);
  Value i = convert(prim::iota(shape, 2, DType::Int64), t), wide = prim::broadcast(u, shape, {0, 1});
  Value end = size_tensor(size - kernel, shape, t), before_last = size_tensor(windows - 1, shape, t);
  Value alpha = end / maximum(before_last, full(1, shape, t));
  auto whole = [](Value v) { return prim::unary("trunc", v); };
  Value start = whole((i + wide) * alpha) - whole(wide * alpha);
  return convert(where(eq(i, before_last), end, start), DType::Int64);
}

template <int n>
std::array<Value, 2> fractional_max_pool(Value x, Shape kernel, Shape out, Value samples) {
  kernel = repeated(kernel, n, "kernel_size");
  out = repeated(out, n, "output_size");
  bool unbatched = rank_of(x) == n + 1;
  BRASA_CHECK(unbatched || rank_of(x) == n + 2, "fractional_max_pool", n, "d: Expected ", n + 1, "D or ", n + 2,
              "D tensor, but got ", type_of(x));
  BRASA_CHECK(is_floating(dtype_of(x)) && dtype_of(x) == dtype_of(samples), "fractional_max_pool", n,
              "d: expected input and random_samples of one floating dtype, got ", type_of(x), " and ",
              type_of(samples));
  Value b = unbatched ? unsqueeze(x, 0) : x;
  BRASA_CHECK(rank_of(samples) == 3 && same_size(size_of(samples, 0), size_of(b, 0)) &&
                  same_size(size_of(samples, 1), size_of(b, 1)) && same_size(size_of(samples, 2), n),
              "fractional_max_pool", n, "d: expected random_samples of shape [", size_of(b, 0), ", ", size_of(b, 1),
              ", ", n, "], got ", type_of(samples));
  Shape shape = {size_of(b, 0), size_of(b, 1)};
  for (int d = 0; d < n; ++d) {
    Expr size = size_of(b, d + 2);
    BRASA_CHECK(is_less(0, out[d]) && is_less(0, kernel[d]) && !is_less(size, out[d] + kernel[d] - 1),
                "fractional_max_pool", n, "d: pool sizes ", kernel, " and output sizes ", out,
                " are too large for input ", type_of(x));
    shape.push_back(out[d]);
  }
  Shape joint = shape;
  joint.insert(joint.end(), kernel.begin(), kernel.end());
  std::vector<Value> indices = {prim::iota(joint, 0, DType::Int64), prim::iota(joint, 1, DType::Int64)};
  Value plane;
  for (int d = 0; d < n; ++d) {
    // The samples of a plane stand in the order width, height in 2d, and depth, height, width in 3d.
    int64_t which = n == 2 ? n - 1 - d : d;
    Value start =
        window_starts(squeeze(narrow(to_opmath(samples), 2, which, 1), 2), size_of(b, d + 2), out[d], kernel[d]);
    Value at = prim::broadcast(start, joint, {0, 1, d + 2}) + prim::iota(joint, n + 2 + d, DType::Int64);
    indices.push_back(at);
    plane = plane ? plane * size_tensor(size_of(b, d + 2), joint) + at : at;
  }
  Value v = merge_dims(prim::gather(b, indices, counted(0, n + 2)), n + 2, 2 * n + 1);
  Value best = prim::arg_reduce(v, n + 2, "max");
  Value index = squeeze(gather_along(merge_dims(plane, n + 2, 2 * n + 1), n + 2, unsqueeze(best, n + 2)), n + 2);
  Value most = prim::reduce(v, {n + 2}, "max");
  return {unbatched ? squeeze(most, 0) : most, unbatched ? squeeze(index, 0) : index};
}

template <int n>
Value put_back(Value g, Value x, Value indices) {
  return call(n == 2 ? "aten::adaptive_max_pool2d_backward" : "aten::adaptive_max_pool3d_backward", {g, x, indices});
}
template <int n>
std::vector<Value> fractional_vjp(const Saved& s) {
  if (!s.ct()) return {};
  return {put_back<n>(s.ct(), s.in(0), s.out(1))};
}
template <int n>
Value fractional_backward(Value g, Value x, Shape, Shape size, Value indices) {
  check_same_shape("fractional_max_pool_backward", g, indices);
  size = repeated(size, n, "output_size");
  for (int64_t d = 0; d < n; ++d)
    BRASA_CHECK(same_size(size_of(g, rank_of(g) - n + d), size[d]), "fractional_max_pool", n,
                "d_backward: expected grad_output of the sizes ", size, ", got ", type_of(g));
  return put_back<n>(g, x, indices);
}

template <int n>
void add_pool(Table& t) {
  std::string size = str("int[", n, "]"), op = str("aten::fractional_max_pool", n, "d");
  auto planes = [](int64_t edge) {
    std::vector<int64_t> shape = {2, 3};
    shape.insert(shape.end(), n, edge);
    return tensor(DType::Float32, shape);
  };
  t.op(str(op, "(Tensor self, ", size, " kernel_size, ", size,
           " output_size, Tensor random_samples) -> (Tensor, Tensor)"))
      .doc(
          "The greatest element of each of output_size windows whose distances come from random_samples, and where it lies in its plane.")
      .autocast(Autocast::Float32, Autocast::None)
      .composed(fractional_max_pool<n>)
      .vjp(own_derivative(fractional_vjp<n>))
      .samples({{planes(6), list({2}), list({3}), floats(2, 3, n).in(0, 1)},
                {planes(5), list({3}), list({1}), floats(2, 3, n).in(0, 1)}});
  t.op(str(op, "_backward(Tensor grad_output, Tensor self, ", size, " kernel_size, ", size,
           " output_size, Tensor indices) -> Tensor"))
      .doc("Each window's gradient put where its index points.")
      .composed(fractional_backward<n>)
      .one_dtype({"grad_output", "self"})
      .samples({{planes(2), planes(4), list({2}), list({2}), planes(2).of(DType::Int64).in(0, 4)}});
}

}  // namespace

void add_fractional_pool(Table& t) {
  add_pool<2>(t);
  add_pool<3>(t);
}

}  // namespace brasa::ops
