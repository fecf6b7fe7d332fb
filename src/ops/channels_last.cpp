#include "ops/channels_last.h"

#include "ops/decompose.h"
#include "ops/shapes.h"
#include "support/error.h"

namespace brasa::ops {
namespace {

// [n, channels, places…] as [n, places…, channels], and back.
Value to_last(Value x) { return move_dims(x, {1}, {rank_of(x) - 1}); }
Value to_second(Value x) { return move_dims(x, {rank_of(x) - 1}, {1}); }

Shape places_of(const Shape& s) { return {s.begin() + 1, s.end() - 1}; }
Shape joined(Expr first, const Shape& places, Expr last) {
  Shape out = {first};
  out.insert(out.end(), places.begin(), places.end());
  out.push_back(last);
  return out;
}

constexpr const char* kForward = "prim::channels_last_convolution";
constexpr const char* kByInput = "prim::channels_last_convolution_by_input";
constexpr const char* kByWeight = "prim::channels_last_convolution_by_weight";

Args forward_args(Value x, Value w, const ConvolutionSteps& s) {
  return {x, w, s.stride, s.padding, s.dilation, s.groups};
}
// Of the derivatives: `size` is that of the missing operand's places.
Args backward_args(Value ct, Value other, const Shape& size, const ConvolutionSteps& s) {
  return {ct, other, size, s.stride, s.padding, s.dilation, s.groups};
}
ConvolutionSteps steps_of(const Args& args) {
  size_t first = args.size() - 4;
  ConvolutionSteps s{args[first].get<Shape>(), args[first + 1].get<Shape>(), args[first + 2].get<Shape>(),
                     args[first + 3].get<Expr>()};
  size_t dims = s.stride.size();
  BRASA_CHECK(s.padding.size() == dims && s.dilation.size() == dims, "a convolution by ", dims, " strides has ",
              s.padding.size(), " paddings and ", s.dilation.size(), " dilations");
  return s;
}

// --- the same by prim::convolution ---

Value convolution(Value x, Value w, const ConvolutionSteps& s) {
  return prim::convolution(x, w, s.stride, s.padding, s.padding, Shape(s.stride.size(), Expr(1)), s.dilation, s.groups);
}
Value forward(Value x, Value w, Shape stride, Shape padding, Shape dilation, Expr groups) {
  return to_last(convolution(to_second(x), to_second(w), {stride, padding, dilation, groups}));
}
// The cotangent of an operand, of which the values do not matter.
Value pulled(size_t operand, Value x, Value w, Value ct, const ConvolutionSteps& s) {
  Value y = convolution(to_second(x), to_second(w), s);
  return to_last(row_of(*y.node).transposed(operand, *y.node, to_second(ct)));
}
Value by_input(Value ct, Value w, Shape size, Shape stride, Shape padding, Shape dilation, Expr groups) {
  Value x = full(0, joined(size_of(ct, 0), size, size_of(w, rank_of(w) - 1) * groups), dtype_of(ct));
  return pulled(0, x, w, ct, {stride, padding, dilation, groups});
}
Value by_weight(Value ct, Value x, Shape size, Shape stride, Shape padding, Shape dilation, Expr groups) {
  int64_t channels = rank_of(ct) - 1;
  Value w = full(0, joined(size_of(ct, channels), size, ir::floordiv(size_of(x, channels), groups)), dtype_of(ct));
  return pulled(1, x, w, ct, {stride, padding, dilation, groups});
}

// --- derivatives: each of the three is linear in two of an image, weights and a result ---

Value called(const char* name, Args args) { return call_all(name, std::move(args))[0]; }
Shape places(Value v) { return places_of(shape_of(v)); }

std::vector<Value> forward_vjp(const Node& n, std::span<const Value> cts, const std::vector<bool>& needs) {
  Value x = n.arg<Value>(0), w = n.arg<Value>(1), ct = cts[0];
  ConvolutionSteps s = steps_of(n.args);
  return {needs[0] ? called(kByInput, backward_args(ct, w, places(x), s)) : Value{},
          needs[1] ? called(kByWeight, backward_args(ct, x, places(w), s)) : Value{}};
}
std::vector<Value> by_input_vjp(const Node& n, std::span<const Value> cts, const std::vector<bool>& needs) {
  Value y = n.arg<Value>(0), w = n.arg<Value>(1), ct = cts[0];
  ConvolutionSteps s = steps_of(n.args);
  return {needs[0] ? called(kForward, forward_args(ct, w, s)) : Value{},
          needs[1] ? called(kByWeight, backward_args(y, ct, places(w), s)) : Value{}};
}
std::vector<Value> by_weight_vjp(const Node& n, std::span<const Value> cts, const std::vector<bool>& needs) {
  Value y = n.arg<Value>(0), x = n.arg<Value>(1), ct = cts[0];
  ConvolutionSteps s = steps_of(n.args);
  return {needs[0] ? called(kForward, forward_args(x, ct, s)) : Value{},
          needs[1] ? called(kByInput, backward_args(y, ct, places(x), s)) : Value{}};
}

const Type& operand(const Args& args, size_t i, size_t dims) {
  const Type& t = ir::type_of(args[i].get<Value>());
  BRASA_CHECK(t.rank() == static_cast<int64_t>(dims) + 2, "a convolution over ", dims,
              " dimensions: expected two more, got ", t);
  return t;
}
std::vector<Type> forward_type(const Args& args) {
  ConvolutionSteps s = steps_of(args);
  size_t dims = s.stride.size();
  const Type &x = operand(args, 0, dims), &w = operand(args, 1, dims);
  Shape size = places_of(x.shape), kernel = places_of(w.shape);
  for (size_t d = 0; d < dims; ++d)
    size[d] = ir::floordiv(size[d] + s.padding[d] * 2 - ((kernel[d] - 1) * s.dilation[d] + 1), s.stride[d]) + 1;
  return {{x.dtype, joined(x.shape[0], size, w.shape[0]), false}};
}
std::vector<Type> by_input_type(const Args& args) {
  ConvolutionSteps s = steps_of(args);
  const Type &ct = operand(args, 0, s.stride.size()), &w = operand(args, 1, s.stride.size());
  return {{ct.dtype, joined(ct.shape[0], args[2].get<Shape>(), w.shape.back() * s.groups), false}};
}
std::vector<Type> by_weight_type(const Args& args) {
  ConvolutionSteps s = steps_of(args);
  const Type &ct = operand(args, 0, s.stride.size()), &x = operand(args, 1, s.stride.size());
  return {{ct.dtype, joined(ct.shape.back(), args[2].get<Shape>(), ir::floordiv(x.shape.back(), s.groups)), false}};
}

// Whether the target takes the call, of operands that are not made yet.
bool takes(const char* name, Args args) {
  ir::Graph side;
  for (size_t i : {size_t{0}, size_t{1}}) {
    Value v = args[i].get<Value>();
    Shape shape = shape_of(v);
    std::rotate(shape.begin() + 1, shape.begin() + 2, shape.end());
    args[i] = side.add_input({dtype_of(v), shape, false});
  }
  return TargetScope::takes(at(name), args);
}
std::optional<Value> of_target(const char* name, Args args) {
  if (!takes(name, args)) return std::nullopt;
  for (size_t i : {size_t{0}, size_t{1}}) args[i] = to_last(args[i].get<Value>());
  return to_second(called(name, std::move(args)));
}

}  // namespace

std::optional<Value> convolution_of_target(Value x, Value w, const ConvolutionSteps& steps) {
  return of_target(kForward, forward_args(x, w, steps));
}
std::optional<Value> transposed_convolution_of_target(Value x, Value w, const Shape& size,
                                                      const ConvolutionSteps& steps) {
  return of_target(kByInput, backward_args(x, w, size, steps));
}

void add_channels_last(Table& t) {
  const TensorSample x = floats(2, 5, 6, 4), w = floats(6, 3, 2, 2), y = floats(2, 3, 2, 6);
  const SampleArg stride = list({2, 2}), padding = list({1, 0}), dilation = list({1, 2});
  t.prim(
       "channels_last_convolution(Tensor x, Tensor w, SymInt[] stride, SymInt[] padding, SymInt[] dilation, SymInt groups) -> Tensor")
      .doc("A convolution of images [n, places…, channels] with weights [outputs, kernel…, channels of a group].")
      .kind(Kind::Whole)
      .type(forward_type)
      .composed(forward)
      .vjp(forward_vjp)
      .samples({{x, w, stride, padding, dilation, 2}});
  t.prim(
       "channels_last_convolution_by_input(Tensor ct, Tensor w, SymInt[] size, SymInt[] stride, SymInt[] padding, SymInt[] dilation, SymInt groups) -> Tensor")
      .doc("The cotangent of channels_last_convolution's image, of places of these sizes.")
      .kind(Kind::Whole)
      .type(by_input_type)
      .composed(by_input)
      .vjp(by_input_vjp)
      .samples({{y, w, list({5, 6}), stride, padding, dilation, 2}});
  t.prim(
       "channels_last_convolution_by_weight(Tensor ct, Tensor x, SymInt[] kernel, SymInt[] stride, SymInt[] padding, SymInt[] dilation, SymInt groups) -> Tensor")
      .doc("The cotangent of channels_last_convolution's weights, of a kernel of these sizes.")
      .kind(Kind::Whole)
      .type(by_weight_type)
      .composed(by_weight)
      .vjp(by_weight_vjp)
      .samples({{y, x, list({3, 2}), stride, padding, dilation, 2}});
}

}  // namespace brasa::ops
