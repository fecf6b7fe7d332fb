#include "ops/accepted.h"
#include "ops/overlap.h"
#include "ops/rows.h"
#include "ops/shapes.h"
#include "support/error.h"

// Planes as columns of their windows, and pools undone.
namespace brasa::ops {
namespace {

struct Unfolding {
  Shape kernel, dilation, padding, stride;
};

Unfolding unfolding(const char* op, const Shape& kernel, const Shape& dilation, const Shape& padding,
                    const Shape& stride) {
  Unfolding u{repeated(kernel, 2, "kernel_size"), repeated(dilation, 2, "dilation"), repeated(padding, 2, "padding"),
              repeated(stride, 2, "stride")};
  for (size_t d = 0; d < 2; ++d)
    BRASA_CHECK(
        is_less(0, u.kernel[d]) && is_less(0, u.dilation[d]) && is_less(0, u.stride[d]) && !is_less(u.padding[d], 0),
        op, ": kernel size, dilation and stride should be greater than zero and padding not negative, got ", u.kernel,
        ", ", u.dilation, ", ", u.stride, " and ", u.padding);
  return u;
}

// [N, C, H, W] as [N, C · kh · kw, windows], a chain of linear primitives.
Value columns(const char* op, Value x, const Unfolding& u) {
  std::vector<Expr> low(4, Expr(0)), none = low;
  low[2] = u.padding[0];
  low[3] = u.padding[1];
  std::array<Expr, 2> blocks, room;
  for (int64_t d : {0, 1}) {
    room[d] = size_of(x, d + 2) + u.padding[d] * 2 - (u.kernel[d] - 1) * u.dilation[d] - 1;
    blocks[d] = ir::floordiv(room[d], u.stride[d]) + 1;
  }
  auto pair = [](const auto& p) { return str("(", p[0], ", ", p[1], ")"); };
  BRASA_CHECK(!is_less(room[0], 0) && !is_less(room[1], 0), op, ": Given input with spatial size (", size_of(x, 2),
              ", ", size_of(x, 3), "), kernel_size=", pair(u.kernel), ", dilation=", pair(u.dilation),
              ", padding=", pair(u.padding), ", calculated shape of the array of sliding blocks as ", pair(blocks),
              ", which is too small (non-positive).");
  Value v = prim::pad(x, scalar(0, dtype_of(x)), low, low, none);
  for (int64_t d : {2, 3}) v = prim::window(v, d, u.kernel[d - 2], u.stride[d - 2], u.dilation[d - 2]);
  v = prim::transpose(v, {0, 1, 4, 5, 2, 3});
  return merge_dims(merge_dims(v, 4, 5), 1, 3);
}

Value im2col(Value x, Shape kernel, Shape dilation, Shape padding, Shape stride) {
  BRASA_CHECK(rank_of(x) == 3 || rank_of(x) == 4, "im2col: Expected 3D or 4D (batch mode) tensor, but got ",
              type_of(x));
  Unfolding u = unfolding("im2col", kernel, dilation, padding, stride);
  return rank_of(x) == 4 ? columns("im2col", x, u) : squeeze(columns("im2col", unsqueeze(x, 0), u), 0);
}

// Windows of whole steps, of which so few lie over an element that they are added in one kernel. Of others each dimension is better added by
// itself: of the last step only a part is there, or gaps lie between the elements of steps.
std::optional<Overlap> few_windows(const Unfolding& u) {
  constexpr int64_t kFew = 16;
  Overlap o;
  for (size_t d : {0, 1}) {
    if (!u.dilation[d].is_constant() || !u.kernel[d].is_constant() || !u.stride[d].is_constant()) return {};
    if (!u.dilation[d].is(1) && !u.stride[d].is(1)) return {};
    if (u.kernel[d].constant() % u.stride[d].constant() != 0) return {};
    o.dims.push_back(static_cast<int64_t>(d) + 2);
    o.sizes.push_back(u.kernel[d].constant());
    o.steps.push_back(u.stride[d].constant());
    o.gaps.push_back(u.dilation[d].constant());
  }
  return o.near() <= kFew ? std::optional(o) : std::nullopt;
}

// The columns of windows, added up over planes with padding around them, which is cut off.
Value added_up(Value x, const Unfolding& u, const Overlap& o, const Shape& plane) {
  Shape padded, parts = {plane[0], plane[1], u.kernel[0], u.kernel[1]};
  for (size_t d : {0, 1}) {
    padded.push_back(plane[d + 2] + u.padding[d] * 2);
    parts.push_back(ir::floordiv(padded[d] - (u.kernel[d] - 1) * u.dilation[d] - 1, u.stride[d]) + 1);
  }
  Value out = overlapped(prim::transpose(prim::reshape(x, parts), {0, 1, 4, 5, 2, 3}), o, padded);
  for (size_t d : {0, 1}) out = narrow(out, static_cast<int64_t>(d) + 2, u.padding[d], plane[d + 2]);
  return out;
}

Value col2im(Value x, Shape size, Shape kernel, Shape dilation, Shape padding, Shape stride) {
  BRASA_CHECK(rank_of(x) == 2 || rank_of(x) == 3, "col2im: Expected 2D or 3D (batch mode) tensor for input, but got ",
              type_of(x));
  Unfolding u = unfolding("col2im", kernel, dilation, padding, stride);
  Value b = rank_of(x) == 3 ? x : unsqueeze(x, 0);
  Expr window = u.kernel[0] * u.kernel[1];
  BRASA_CHECK(same_size(ir::mod(size_of(b, 1), window), 0),
              "col2im: Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got ",
              size_of(b, 1), " and kernel_size=", u.kernel);
  Shape plane = {size_of(b, 0), ir::floordiv(size_of(b, 1), window)};
  for (Expr s : repeated(size, 2, "output_size")) plane.push_back(s);
  // The transpose of taking columns; what they are taken from does not matter.
  Value start = prim::unary("neg", full(0, plane, dtype_of(x))), v = columns("col2im", start, u);
  BRASA_CHECK(same_size(size_of(v, 2), size_of(b, 2)), "col2im: Given output_size=", size, ", kernel_size=", u.kernel,
              ", dilation=", u.dilation, ", padding=", u.padding, ", stride=", u.stride,
              ", expected size of input's last dimension to match the number of sliding blocks ", size_of(v, 2),
              ", but got ", size_of(b, 2));
  std::optional<Overlap> o = few_windows(u);
  Value out = o ? added_up(b, u, *o, plane) : pulled_through(start, v, prim::reshape(b, shape_of(v)));
  return rank_of(x) == 3 ? out : squeeze(out, 0);
}

std::vector<Value> im2col_vjp(const Saved& s) {
  const Shape& shape = shape_of(s.in(0));
  return {col2im(s.ct(), {shape.end() - 2, shape.end()}, s.arg<Shape>(1), s.arg<Shape>(2), s.arg<Shape>(3),
                 s.arg<Shape>(4))};
}
std::vector<Value> col2im_vjp(const Saved& s) {
  return {im2col(s.ct(), s.arg<Shape>(2), s.arg<Shape>(3), s.arg<Shape>(4), s.arg<Shape>(5))};
}

template <int kSpatial>
Value max_unpool(Value x, Value indices, Shape size) {
  BRASA_CHECK(rank_of(x) == kSpatial + 1 || rank_of(x) == kSpatial + 2, "max_unpool: Input to max_unpooling", kSpatial,
              "d should be a ", kSpatial + 1, "d or ", kSpatial + 2, "d Tensor, but got ", type_of(x));
  check_same_shape("max_unpool", floating_only("max_unpool", x), indices);
  BRASA_CHECK(dtype_of(indices) == DType::Int64,
              "max_unpool: elements in indices should be type int64 but got: ", name(dtype_of(indices)));
  size = repeated(size, kSpatial, "output_size");
  int64_t lead = rank_of(x) - kSpatial;
  Shape shape(shape_of(x).begin(), shape_of(x).begin() + lead), flat = shape, picked = shape;
  shape.insert(shape.end(), size.begin(), size.end());
  flat.push_back(ir::product(size));
  picked.push_back(ir::product(Shape(shape_of(x).begin() + lead, shape_of(x).end())));
  Value index = checked_forward_index(prim::reshape(indices, picked), flat.back(), "max_unpool");
  Value out = prim::scatter(full(0, flat, dtype_of(x)), indices_along(picked, lead, index), prim::reshape(x, picked),
                            counted(0, lead + 1), "");
  return prim::reshape(out, shape);
}
Value max_unpool2d(Value x, Value indices, Shape size) { return max_unpool<2>(x, indices, size); }
Value max_unpool3d(Value x, Value indices, Shape size, Shape stride, Shape padding) {
  for (const auto& [what, list] : {std::pair("stride", stride), std::pair("padding", padding)})
    BRASA_CHECK(list.size() == 3, "There should be exactly three elements (depth, height, width) in ", what,
                ", but got: ", list.size(), " elements.");
  return max_unpool<3>(x, indices, size);
}

}  // namespace

void add_fold(Table& t) {
  t.op("aten::im2col(Tensor self, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor")
      .doc("The windows of planes as columns: [N, C, H, W] as [N, C · window, number of windows].")
      .composed(im2col)
      .vjp(own_derivative(im2col_vjp))
      .samples({{floats(2, 3, 4, 5), list({2, 3}), list({1, 1}), list({1, 0}), list({2, 1})},
                {floats(1, 2, 5, 6), list({2, 3}), list({2, 1}), list({1, 2}), list({1, 1})},
                {floats(1, 3, 3), list({2}), list({2}), list({0}), list({1})}});
  t.op("aten::col2im(Tensor self, SymInt[2] output_size, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor")
      .out(Out::Cast)
      .doc("The transpose of im2col: overlapping windows add up.")
      .composed(col2im)
      .vjp(own_derivative(col2im_vjp))
      .samples({{floats(2, 8, 9), list({4, 4}), list({2, 2}), list({1, 1}), list({0, 0}), list({1, 1})},
                {floats(16, 9), list({4, 5}), list({4}), list({1}), list({2}), list({2})},
                {floats(9, 3), list({5, 4}), list({3}), list({1}), list({1, 0}), list({2})}});
  t.op("aten::max_unpool2d(Tensor self, Tensor indices, SymInt[2] output_size) -> Tensor")
      .doc("Each value put where its index points in a plane of zeros.")
      .keeps_memory_format()
      .autocast(Autocast::Float32, Autocast::None)
      .composed(max_unpool2d)
      .samples({{floats(1, 2, 1, 1), ints(1, 2, 1, 1), list({2, 2})}});
  t.op("aten::max_unpool3d(Tensor self, Tensor indices, SymInt[3] output_size, int[3] stride, int[3] padding) -> Tensor")
      .doc("Each value put where its index points in a volume of zeros.")
      .autocast(Autocast::Float32, Autocast::None)
      .composed(max_unpool3d)
      .samples({{floats(1, 2, 1, 1, 1), ints(1, 2, 1, 1, 1), list({2, 2, 2}), list({2, 2, 2}), list({0, 0, 0})}});
}

}  // namespace brasa::ops
