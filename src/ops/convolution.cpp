#include <algorithm>

#include "ops/channels_last.h"
#include "ops/rows.h"
#include "ops/shapes.h"
#include "support/error.h"

namespace brasa::ops {
namespace {

struct Convolution {
  Shape stride, low, high, dilation;
  Expr groups;
  bool transposed = false;
  Shape output_padding;
};

void check_operands(Value x, Value w, Value bias, const Convolution& c) {
  int64_t spatial = rank_of(w) - 2;
  BRASA_CHECK(spatial >= 1, "convolution: weight should have at least three dimensions, got ", type_of(w));
  BRASA_CHECK(rank_of(x) == rank_of(w), "Expected ", spatial + 1, "D (unbatched) or ", spatial + 2,
              "D (batched) input to conv", spatial, "d, but got input of size: ", shape_of(x));
  BRASA_CHECK(dtype_of(x) == dtype_of(w), "Input type (", name(dtype_of(x)), ") and weight type (", name(dtype_of(w)),
              ") should be the same");
  BRASA_CHECK(!bias || dtype_of(bias) == dtype_of(x), "Input type (", name(dtype_of(x)), ") and bias type (",
              bias ? name(dtype_of(bias)) : "", ") should be the same");
  for (int64_t d = 0; d < spatial; ++d) {
    BRASA_CHECK(!is_less(c.stride[d], 1), "non-positive stride is not supported, got ", c.stride);
    BRASA_CHECK(!is_less(c.dilation[d], 1), "dilation should be greater than zero, got ", c.dilation);
    BRASA_CHECK(!is_less(c.low[d], 0) && !is_less(c.high[d], 0), "negative padding is not supported, got ", c.low);
  }
  BRASA_CHECK(!is_less(c.groups, 1), "non-positive groups is not supported, got ", c.groups);
  BRASA_CHECK(!is_less(size_of(w, 0), c.groups), "Given groups=", c.groups, ", expected weight to be at least ",
              c.groups, " at dimension 0, but got weight of size ", shape_of(w), " instead");
  for (int64_t d = 0; d < spatial; ++d)
    BRASA_CHECK(!is_less(size_of(w, d + 2), 1), "kernel size should be greater than zero, but got weight of size ",
                shape_of(w));
  Expr inputs = c.transposed ? size_of(w, 0) : size_of(w, 1) * c.groups;
  BRASA_CHECK(same_size(size_of(x, 1), inputs), "Given groups=", c.groups, ", weight of size ", shape_of(w),
              ", expected input", shape_of(x), " to have ", inputs, " channels, but got ", size_of(x, 1),
              " channels instead");
  BRASA_CHECK(c.transposed || same_size(ir::mod(size_of(w, 0), c.groups), 0), "Given groups=", c.groups,
              ", expected weight to be divisible by ", c.groups, " at dimension 0, but got weight of size ",
              shape_of(w), " instead");
  for (size_t d = 0; d < c.output_padding.size(); ++d)
    BRASA_CHECK(!is_less(c.output_padding[d], 0) && is_less(c.output_padding[d], ir::max(c.stride[d], c.dilation[d])),
                "output padding must be smaller than either stride or dilation, but got output_padding: ",
                c.output_padding, ", stride: ", c.stride, ", dilation: ", c.dilation);
  Expr outputs = c.transposed ? size_of(w, 1) * c.groups : size_of(w, 0);
  BRASA_CHECK(!bias || (rank_of(bias) == 1 && same_size(size_of(bias, 0), outputs)), "Given weight of size ",
              shape_of(w), ", expected bias to be 1-dimensional with ", outputs, " elements, but got bias of size ",
              bias ? shape_of(bias) : Shape{}, " instead");
  for (int64_t d = 0; d < spatial && !c.transposed; ++d) {
    Expr kernel = (size_of(w, d + 2) - 1) * c.dilation[d] + 1, space = size_of(x, d + 2) + c.low[d] + c.high[d];
    BRASA_CHECK(!is_less(space, kernel), "Calculated padded input size per channel: (", space, "). Kernel size: (",
                kernel, "). Kernel size can't be greater than actual input size");
  }
  for (int64_t d = 0; d < spatial && c.transposed; ++d) {
    Expr kernel = (size_of(w, d + 2) - 1) * c.dilation[d] + 1, n = size_of(x, d + 2);
    Expr out = (n - 1) * c.stride[d] + kernel + c.output_padding[d] - c.low[d] - c.high[d];
    BRASA_CHECK(!is_less(out, 1), "Given input size per channel: (", n, "). Calculated output size per channel: (", out,
                "). Output size is too small");
  }
}

// A stride that equals the kernel, without padding or dilation: every element is in one window, so that the windows are rows
// of a matrix product. A kernel of one element leaves the layout alone, and is better off as a convolution.
bool tiles(Value w, const Convolution& c) {
  bool one = true;
  for (size_t d = 0; d < c.stride.size(); ++d) {
    Expr k = size_of(w, static_cast<int64_t>(d) + 2);
    if (!k.is_constant() || !(c.stride[d] == k) || !c.low[d].is(0) || !c.high[d].is(0) || !c.dilation[d].is(1) ||
        k.is(0))
      return false;
    one = one && k.is(1);
  }
  return c.groups.is(1) && !one;
}

Value tiled(Value x, Value w) {
  int64_t spatial = rank_of(w) - 2;
  Shape split = {size_of(x, 0), size_of(x, 1)}, counts;
  Dims order = {0}, inner = {1};
  for (int64_t d = 2; d < rank_of(x); ++d) {
    Expr k = size_of(w, d), n = ir::floordiv(size_of(x, d), k);
    x = narrow(x, d, 0, n * k);
    counts.push_back(n);
    order.push_back(static_cast<int64_t>(split.size()));
    split.push_back(n);
    inner.push_back(static_cast<int64_t>(split.size()));
    split.push_back(k);
  }
  order.insert(order.end(), inner.begin(), inner.end());
  Value windows = merge_dims(prim::transpose(prim::reshape(x, split), order), spatial + 1, 2 * spatial + 1);
  Value rows = merge_dims(windows, 0, spatial);
  Value out = prim::dot_general(rows, merge_dims(w, 1, spatial + 1), {1}, {1}, {}, {});
  Shape shape = {size_of(x, 0)};
  shape.insert(shape.end(), counts.begin(), counts.end());
  shape.push_back(size_of(w, 0));
  return move_dims(prim::reshape(out, shape), {spatial + 1}, {1});
}

// The gradient of a convolution with respect to its input: x spread by the stride, convolved with the flipped kernel whose inputs
// and outputs are exchanged in each group.
Value transposed_convolution(Value x, Value w, const Convolution& c) {
  int64_t spatial = rank_of(w) - 2;
  Value kernel = split_dim(w, 0, {c.groups, ir::floordiv(size_of(w, 0), c.groups)});
  kernel = prim::reverse(merge_dims(transpose(kernel, 1, 2), 0, 1), counted(2, spatial));
  Shape low, high;
  for (int64_t d = 0; d < spatial; ++d) {
    Expr reach = (size_of(w, d + 2) - 1) * c.dilation[d];
    low.push_back(reach - c.low[d]);
    high.push_back(reach - c.high[d] + c.output_padding[d]);
  }
  return prim::convolution(x, kernel, Shape(spatial, Expr(1)), low, high, c.stride, c.dilation, c.groups);
}

Value plain_convolution(Value x, Value w, const Convolution& c) {
  if (c.transposed) return transposed_convolution(x, w, c);
  return prim::convolution(x, w, c.stride, c.low, c.high, Shape(c.stride.size(), Expr(1)), c.dilation, c.groups);
}

// By the target, which rounds before the bias is added.
std::optional<Value> convolved_by_target(Value x, Value w, const Convolution& c) {
  if (!(c.low == c.high)) return std::nullopt;
  ConvolutionSteps steps{c.stride, c.low, c.dilation, c.groups};
  if (!c.transposed) return convolution_of_target(x, w, steps);
  Shape size;
  for (size_t d = 0; d < c.stride.size(); ++d) {
    // What a convolution steps over at the end is less than a step.
    Expr more = c.output_padding[d];
    if (!more.is(0) && !(more.is_constant() && c.stride[d].is_constant() && more.constant() < c.stride[d].constant()))
      return std::nullopt;
    auto dim = static_cast<int64_t>(d) + 2;
    size.push_back((size_of(x, dim) - 1) * c.stride[d] + (size_of(w, dim) - 1) * c.dilation[d] + 1 + more -
                   c.low[d] * 2);
  }
  return transposed_convolution_of_target(x, w, size, steps);
}

Value convolved(Value x, Value w, Value bias, const Convolution& c) {
  bool batched = rank_of(x) != rank_of(w) - 1;
  if (!batched) x = unsqueeze(x, 0);
  check_operands(x, w, bias, c);
  DType t = dtype_of(x);
  bool in_tiles = !c.transposed && tiles(w, c);
  std::optional<Value> whole;
  if (!in_tiles) whole = convolved_by_target(x, w, c);
  // With the bias, the sum is rounded once.
  if (bias && !whole) x = to_opmath(x), w = to_opmath(w);
  Value out = whole ? *whole : in_tiles ? tiled(x, w) : plain_convolution(x, w, c);
  if (bias) out = convert(to_opmath(out) + along(to_opmath(bias), 1, rank_of(out)), t);
  return batched ? out : squeeze(out, 0);
}

Convolution parameters(Value w, const Shape& stride, const Shape& padding, const Shape& dilation, Expr groups) {
  size_t n = std::max<int64_t>(rank_of(w) - 2, 1);
  Shape pad = repeated(padding, n, "padding");
  return {repeated(stride, n, "stride"), pad, pad, repeated(dilation, n, "dilation"), groups, false, {}};
}

Value conv(Value x, Value w, Value bias, Shape stride, Shape padding, Shape dilation, Expr groups) {
  return convolved(x, w, bias, parameters(w, stride, padding, dilation, groups));
}

Value conv_named(Value x, Value w, Value bias, Shape stride, std::string padding, Shape dilation, Expr groups) {
  BRASA_CHECK(padding == "valid" || padding == "same", "Invalid padding string: '", padding,
              "', expected 'valid' or 'same'");
  Convolution c = parameters(w, stride, {Expr(0)}, dilation, groups);
  if (padding == "same") {
    for (size_t d = 0; d < c.stride.size(); ++d) {
      BRASA_CHECK(c.stride[d].is(1), "padding='same' is not supported for strided convolutions");
      // Of an odd total the larger half goes behind.
      Expr total = c.dilation[d] * (size_of(w, static_cast<int64_t>(d) + 2) - 1);
      c.low[d] = ir::floordiv(total, 2);
      c.high[d] = total - c.low[d];
    }
  }
  return convolved(x, w, bias, c);
}
Value conv_mode(Value x, Value w, Value bias, Shape stride, std::string padding, Shape dilation, Expr groups) {
  return conv_named(x, w, bias, stride, padding, dilation, groups);
}

Value convolution(Value x, Value w, Value bias, Shape stride, Shape padding, Shape dilation, bool transposed,
                  Shape output_padding, Expr groups) {
  Convolution c = parameters(w, stride, padding, dilation, groups);
  c.transposed = transposed;
  if (transposed) c.output_padding = repeated(output_padding, c.stride.size(), "output_padding");
  return convolved(x, w, bias, c);
}

Value conv_transpose(Value x, Value w, Value bias, Shape stride, Shape padding, Shape output_padding, Expr groups,
                     Shape dilation) {
  return convolution(x, w, bias, stride, padding, dilation, true, output_padding, groups);
}

std::vector<Value> convolution_backward(Value g, Value x, Value w, std::optional<Shape>, Shape stride, Shape padding,
                                        Shape dilation, bool transposed, Shape output_padding, Expr groups,
                                        std::vector<bool> mask) {
  Convolution c = parameters(w, stride, padding, dilation, groups);
  c.transposed = transposed;
  if (transposed) c.output_padding = repeated(output_padding, c.stride.size(), "output_padding");
  bool batched = rank_of(x) != rank_of(w) - 1;
  Value bx = batched ? x : unsqueeze(x, 0), bg = batched ? g : unsqueeze(g, 0);
  check_operands(bx, w, {}, c);
  Value y = plain_convolution(bx, w, c);
  const Node& node = *y.node;
  check_same_shape("convolution_backward", bg, y);
  std::vector<Value> out(3, no_result(dtype_of(g)));
  if (mask[0]) out[0] = prim::reshape(row_of(node).transposed(0, node, bg), shape_of(x));
  if (mask[1]) out[1] = pulled_through(w, node.inputs()[1], row_of(node).transposed(1, node, bg));
  if (mask[2]) {
    Dims dims = all_dims(bg);
    dims.erase(dims.begin() + 1);
    out[2] = sum(bg, dims);
  }
  return out;
}

// [time, batch, in] with weight [width, in, out]: windows [time, batch, width, in] are rows of a product, which reads the weight as it lies.
Value conv_tbc(Value x, Value w, Value bias, int64_t pad) {
  check_rank("conv_tbc", "input", x, 3);
  check_rank("conv_tbc", "weight", w, 3);
  Value planes = prim::transpose(w, {2, 1, 0});
  check_operands(prim::transpose(x, {1, 2, 0}), planes, bias, parameters(planes, {Expr(1)}, {Expr(pad)}, {Expr(1)}, 1));
  Value windows = prim::transpose(prim::window(pad_dim(x, 0, pad, pad), 0, size_of(w, 0), 1, 1), {0, 1, 3, 2});
  Value rows = merge_dims(merge_dims(windows, 2, 3), 0, 1);
  Value y = matmul2(rows, merge_dims(w, 0, 1));
  return prim::reshape(y, {size_of(windows, 0), size_of(windows, 1), size_of(w, 2)}) + bias;
}

// {∂input, ∂weight, ∂bias} of conv_tbc.
std::vector<Value> conv_tbc_backward(Value g, Value x, Value w, Value, int64_t pad) {
  for (Value v : {g, x, w}) check_rank("conv_tbc_backward", "an operand", v, 3);
  auto planes = [](Value v) { return prim::transpose(v, {1, 2, 0}); };
  std::vector<Value> out = convolution_backward(planes(g), planes(x), prim::transpose(w, {2, 1, 0}), {}, {Expr(1)},
                                                {Expr(pad)}, {Expr(1)}, false, {Expr(0)}, 1, {true, true, true});
  return {prim::transpose(out[0], {2, 0, 1}), prim::transpose(out[1], {2, 1, 0}), out[2]};
}

// The operators that are named after PyTorch's kernels ask for the kernel's size beside the weight.
void check_kernel(Value w, const Shape& kernel) {
  bool same = rank_of(w) == static_cast<int64_t>(kernel.size()) + 2;
  for (size_t d = 0; same && d < kernel.size(); ++d)
    same = same_size(size_of(w, static_cast<int64_t>(d) + 2), kernel[d]);
  BRASA_CHECK(same, "convolution: expected a weight with a kernel of size ", kernel, ", got ", type_of(w));
}
Value conv_sized(Value x, Value w, Shape kernel, Value bias, Shape stride, Shape padding) {
  check_kernel(w, kernel);
  return conv(x, w, bias, stride, padding, {Expr(1)}, 1);
}
Value conv_dilated(Value x, Value w, Shape kernel, Value bias, Shape stride, Shape padding, Shape dilation) {
  check_kernel(w, kernel);
  return conv(x, w, bias, stride, padding, dilation, 1);
}
Value conv_by_channel(Value x, Value w, Shape kernel, Value bias, Shape stride, Shape padding, Shape dilation) {
  check_kernel(w, kernel);
  int64_t channels = rank_of(x) - static_cast<int64_t>(kernel.size()) - 1;
  return conv(x, w, bias, stride, padding, dilation, size_of(x, channels));
}
Value conv_transpose_sized(Value x, Value w, Shape kernel, Value bias, Shape stride, Shape padding,
                           Shape output_padding, Shape dilation) {
  check_kernel(w, kernel);
  return conv_transpose(x, w, bias, stride, padding, output_padding, 1, dilation);
}

// Ones for each spatial dimension as a schema writes a default.
std::string filled(int spatial, const char* item) {
  std::string out = "[";
  for (int d = 0; d < spatial; ++d) out += str(d ? ", " : "", item);
  return out + "]";
}

TensorSample sample(std::initializer_list<int64_t> lead, int spatial, int64_t size) {
  std::vector<int64_t> shape = lead;
  shape.insert(shape.end(), spatial, size);
  return tensor(DType::Float32, shape);
}

void add_spatial(Table& t, int n) {
  std::string one = filled(n, "1"), zero = filled(n, "0"), size = str("SymInt[", n, "]");
  t.op(str("aten::conv", n, "d(Tensor input, Tensor weight, Tensor? bias=None, ", size, " stride=", one, ", ", size,
           " padding=", zero, ", ", size, " dilation=", one, ", SymInt groups=1) -> Tensor"))
      .doc("Cross-correlation with a kernel, of groups of channels.")
      .keeps_memory_format(2)
      .autocast(Autocast::Lower)
      .backward_node("ConvolutionBackward0")
      .gradients_together()
      .composed(conv)
      .samples({{sample({2, 3}, n, 5), sample({4, 3}, n, 3), floats(4)},
                {sample({4}, n, 5), sample({2, 2}, n, 2), ir::None{}, list({2}), list({1}), list({1}), 2},
                {sample({1, 2}, n, 4), sample({3, 2}, n, 2), floats(3), list({2})}});
  t.op(str("aten::conv", n, "d.padding(Tensor input, Tensor weight, Tensor? bias=None, ", size, " stride=", one,
           ", str padding=\"valid\", ", size, " dilation=", one, ", SymInt groups=1) -> Tensor"))
      .doc("Cross-correlation; with padding='same' the result has the input's size.")
      .keeps_memory_format(2)
      .autocast(Autocast::Lower)
      .backward_node("ConvolutionBackward0")
      .gradients_together()
      .composed(conv_named)
      .samples({{sample({2, 3}, n, 5), sample({4, 3}, n, 2), floats(4), list({1}), "same"}});
  t.op(str("aten::conv_transpose", n, "d", n == 1 ? "" : ".input", "(Tensor input, Tensor weight, Tensor? bias=None, ",
           size, " stride=", one, ", ", size, " padding=", zero, ", ", size, " output_padding=", zero,
           ", SymInt groups=1, ", size, " dilation=", one, ") -> Tensor"))
      .doc("The transpose of a convolution as a linear map, of groups of channels.")
      .keeps_memory_format(2)
      .autocast(Autocast::Lower)
      .backward_node("ConvolutionBackward0")
      .gradients_together()
      .composed(conv_transpose)
      .samples(
          {{sample({2, 4}, n, 3), sample({4, 3}, n, 3), floats(3), list({2}), list({1}), list({1})},
           {sample({2, 4}, n, 3), sample({4, 1}, n, 2), ir::None{}, list({1}), list({0}), list({0}), 2, list({2})},
           {sample({2, 4}, n, 2), sample({4, 1}, n, n == 1 ? 17 : 4), floats(2), list({3}), list({1}), list({2}), 2,
            list({2})},
           {sample({1, 2}, n, n == 1 ? 30 : 3), sample({2, 3}, n, n == 1 ? 13 : 2), ir::None{}, list({3}), list({1})}});
}

// As PyTorch's kernels are named: graphs that were captured below its autograd contain them.
void add_kernels(Table& t, int n) {
  std::string one = filled(n, "1"), zero = filled(n, "0"), size = str("SymInt[", n, "]");
  std::string operands = str("(Tensor self, Tensor weight, ", size, " kernel_size, Tensor? bias"),
              defaults = str(operands, "=None, ", size, " stride=", one, ", ", size, " padding=", zero),
              given = str(operands, ", ", size, " stride, ", size, " padding");
  const char* doc = "A convolution by a weight whose kernel has this size.";
  ir::Arg kernel(std::vector<Expr>(n, Expr(2)));
  TensorSample x = sample({2, 3}, n, 4), w = sample({4, 3}, n, 2);
  for (const std::string& schema : {str("aten::", n == 2 ? "thnn_conv2d" : "slow_conv3d", defaults),
                                    str("aten::", n == 2 ? "_slow_conv2d" : "slow_conv3d", "_forward", given)})
    t.op(schema + ") -> Tensor")
        .doc(doc)
        .composed(conv_sized)
        .samples({{x, w, kernel, floats(4), list({1}), list({0})}, {x, w, kernel, ir::None{}, list({2}), list({1})}});
  t.op(str("aten::slow_conv_dilated", n, "d", defaults, ", ", size, " dilation=", one, ") -> Tensor"))
      .doc(doc)
      .composed(conv_dilated)
      .samples({{x, w, kernel, floats(4)}, {x, w, kernel, ir::None{}, list({1}), list({1}), list({2})}});
  t.op(str("aten::", n == 2 ? "_conv_depthwise2d" : "conv_depthwise3d", given, ", ", size, " dilation) -> Tensor"))
      .doc("A convolution of each channel by kernels of its own, of this size.")
      .composed(conv_by_channel)
      .samples({{x, sample({6, 1}, n, 2), kernel, floats(6), list({1}), list({1}), list({2})}});
  t.op(str("aten::slow_conv_transpose", n, "d", defaults, ", ", size, " output_padding=", zero, ", ", size,
           " dilation=", one, ") -> Tensor"))
      .doc("The transpose of a convolution by a weight whose kernel has this size.")
      .composed(conv_transpose_sized)
      .samples({{x, sample({3, 2}, n, 2), kernel, floats(2), list({2}), list({1}), list({1})}});
}

}  // namespace

void add_convolution(Table& t) {
  add_channels_last(t);
  for (int n : {1, 2, 3}) add_spatial(t, n);
  for (int n : {2, 3}) add_kernels(t, n);
  t.op("aten::convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups) -> Tensor")
      .doc("A convolution over any number of dimensions, or the transpose of one.")
      .keeps_memory_format(2)
      .autocast(Autocast::None, Autocast::Lower)
      .gradients_together()
      .composed(convolution)
      .samples({{floats(2, 3, 5), floats(4, 3, 3), floats(4), list({1}), list({1}), list({1}), false, list({0}), 1},
                {floats(2, 3, 5), floats(3, 2, 3), ir::None{}, list({2}), list({1}), list({1}), true, list({1}), 1}});
  t.op("aten::_convolution_mode(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, str padding, SymInt[] dilation, SymInt groups) -> Tensor")
      .doc("A convolution whose padding is 'valid' or 'same'.")
      .autocast(Autocast::None, Autocast::Lower)
      .composed(conv_mode)
      .samples({{floats(2, 3, 5), floats(4, 3, 3), floats(4), list({1}), "same", list({1}), 1}});
  t.op("aten::convolution_backward(Tensor grad_output, Tensor input, Tensor weight, SymInt[]? bias_sizes, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups, bool[3] output_mask) -> (Tensor, Tensor, Tensor)")
      .doc("The gradients of a convolution's input, weight and bias.")
      .composed(convolution_backward)
      .samples({{floats(2, 4, 5), floats(2, 3, 5), floats(4, 3, 3), list({4}), list({1}), list({1}), list({1}), false,
                 list({0}), 1, std::vector<bool>{true, true, true}}});
  t.op("aten::conv_tbc(Tensor self, Tensor weight, Tensor bias, int pad=0) -> Tensor")
      .doc("conv1d of [time, batch, channels] with weight [width, in, out].")
      .autocast(Autocast::Lower)
      .composed(conv_tbc)
      .samples({{floats(5, 2, 3), floats(2, 3, 4), floats(4), 1}});
  t.op("aten::conv_tbc_backward(Tensor self, Tensor input, Tensor weight, Tensor bias, int pad) -> (Tensor, Tensor, Tensor)")
      .doc("The gradients of conv_tbc's input, weight and bias, from its result's.")
      .composed(conv_tbc_backward)
      .samples({{floats(6, 2, 4), floats(5, 2, 3), floats(2, 3, 4), floats(4), 1}});
  t.op("aten::_slow_conv2d_backward.output_mask(Tensor grad_output, Tensor self, Tensor weight, SymInt[2] kernel_size, SymInt[2] stride, SymInt[2] padding, bool[3] output_mask) -> (Tensor grad_input, Tensor grad_weight, Tensor grad_bias)")
      .doc("The gradients of _slow_conv2d_forward's input, weight and bias.")
      .composed([](Value g, Value x, Value w, Shape kernel, Shape stride, Shape padding, std::vector<bool> mask) {
        check_kernel(w, kernel);
        return convolution_backward(g, x, w, {}, stride, padding, {Expr(1)}, false, {Expr(0)}, 1, mask);
      })
      .samples({{floats(2, 4, 3, 3), floats(2, 3, 4, 4), floats(4, 3, 2, 2), list({2, 2}), list({1}), list({0}),
                 std::vector<bool>{true, true, true}}});
}

}  // namespace brasa::ops
