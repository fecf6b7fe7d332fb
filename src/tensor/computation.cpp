#include "tensor/computation.h"

#include <algorithm>

#include "ops/builder.h"
#include "ops/primitives.h"
#include "support/error.h"
#include "tensor/execute.h"
#include "tensor/in_place.h"
#include "tensor/result_order.h"
#include "tensor/traced.h"
#include "transforms/derived.h"
#include "transforms/vjp.h"

namespace brasa::eager {

InputTensor InputTensor::of(const Tensor& t) {
  InputTensor in = described(t);
  in.data = checked_impl(t)->data("an operator");
  return in;
}

InputTensor InputTensor::described(const Tensor& t) {
  static std::byte elsewhere;
  const TensorImpl* impl = checked_impl(t);
  return {.data = &elsewhere,
          .sizes = impl->sizes.data(),
          .strides = impl->strides.data(),
          .rank = static_cast<uint32_t>(impl->sizes.size()),
          .dtype = impl->dtype,
          .weak = impl->weak,
          .contiguous = impl->contiguous,
          .tensor = &t,
          .device = impl->storage->travels() ? nullptr : &impl->device()};
}

std::vector<Tensor> Results::take() {
  if (!more_.empty()) return std::move(more_);
  std::vector<Tensor> out;
  for (size_t i = 0; i < size_; ++i) out.push_back(std::move(inline_[i]));
  return out;
}

const Backward& Computation::backward(const std::vector<bool>& needs, const std::vector<bool>& given) const {
  std::lock_guard lock(mutex_);
  auto& b = backwards_[{needs, given}];
  if (!b) b = std::make_unique<Backward>(*this, needs, given);
  return *b;
}

const Computation& Computation::in_place() const {
  std::lock_guard lock(mutex_);
  if (!in_place_) in_place_ = std::make_unique<InPlace>(*this);
  return *in_place_;
}

const Computation& Computation::in_order(const Orders& orders) const {
  std::vector<int64_t> key;
  for (const std::vector<Sizes>* list : {&orders.inputs, &orders.results}) {
    for (const Sizes& order : *list) {
      key.insert(key.end(), order.begin(), order.end());
      key.push_back(-1);
    }
    key.push_back(-2);
  }
  std::lock_guard lock(mutex_);
  auto& made = in_order_[key];
  if (!made) made = std::make_unique<InOrder>(*this, orders);
  return *made;
}

void check_castable(DType from, DType to) {
  bool can = is_complex(to) || (!is_complex(from) && (is_floating(to) || !is_floating(from)));
  can = can && (to != DType::Bool || from == DType::Bool);
  BRASA_CHECK(can, "result type ", toString(from), " can't be cast to the desired output type ", toString(to));
}

void check_in_place(DType result, DType self) {
  check_castable(result, self);
  // What a magnitude or an angle loses does not come back.
  BRASA_CHECK(!is_complex(self) || !is_floating(result),
              "the in-place form is not supported for complex tensors: the result is ", name(result), ", self is ",
              name(self));
}

std::vector<ir::Value> InPlace::build(std::span<const ir::Value> inputs) const {
  std::vector<ir::Value> out = functional_.build(inputs);
  DType to = ir::type_of(inputs[0]).dtype;
  check_in_place(ir::type_of(out[0]).dtype, to);
  return {ops::prim::convert(out[0], to)};
}

static std::vector<int64_t> inverse(const Sizes& order) {
  std::vector<int64_t> out(order.size());
  for (size_t k = 0; k < order.size(); ++k) out[order[k]] = static_cast<int64_t>(k);
  return out;
}

std::vector<ir::Value> InOrder::build(std::span<const ir::Value> inputs) const {
  std::vector<ir::Value> operands(inputs.begin(), inputs.end());
  for (size_t i = 0; i < orders_.inputs.size(); ++i)
    if (const Sizes& order = orders_.inputs[i]; !order.empty())
      operands[i] = ops::prim::transpose(operands[i], inverse(order));
  std::vector<ir::Value> out = functional_.build(operands);
  for (size_t r = 0; r < out.size(); ++r)
    if (Sizes order = order_of_result(orders_, r);
        out[r] && !order.empty() && ir::type_of(out[r]).rank() == std::ssize(order))
      out[r] = ops::prim::transpose(out[r], order.vec());
  return out;
}

void InOrder::derive_types(std::vector<ir::Type>& types, ir::Facts& facts) const {
  auto reorder = [&](auto&& order_for) {
    for (size_t i = 0; i < orders_.inputs.size(); ++i) {
      if (orders_.inputs[i].empty()) continue;
      ir::Shape shape;
      for (int64_t d : order_for(orders_.inputs[i])) shape.push_back(types[i].shape[d]);
      types[i].shape = std::move(shape);
    }
  };
  reorder(inverse);
  functional_.derive_types(types, facts);
  reorder([](const Sizes& order) { return order.vec(); });
}

// The first operands say it. Tensors of a list say it together.
std::vector<Sizes> RowComputation::orders_of_results(const std::vector<Sizes>& inputs) const {
  size_t operands = std::min<size_t>(row_.memory_format, slots_.size());
  for (const Slot& s : std::span(slots_).first(operands)) {
    if (s.first < 0 || s.size) continue;
    const Sizes& first = inputs[s.first];
    auto given = static_cast<size_t>(s.list ? std::count(s.presence.begin(), s.presence.end(), true) : 1);
    if (!first.empty() && std::all_of(inputs.begin() + s.first, inputs.begin() + s.first + given,
                                      [&](const Sizes& order) { return order == first; }))
      return std::vector<Sizes>(row_.schema.returns.size(), first);
  }
  return {};
}

namespace {

// A factory's only input that has dimensions is the one with its sizes, so dimensions of that can be merged as a tensor's.
bool may_have_one_shape(const std::vector<RowComputation::Slot>& slots) {
  size_t sizes = 0, tensors = 0;
  for (const RowComputation::Slot& s : slots) {
    if (s.size && !(s.list && std::all_of(s.signs.begin(), s.signs.end(), [](int sign) { return sign == 1; })))
      return false;
    sizes += s.size;
    tensors += !s.size && s.first >= 0;
  }
  return sizes == 0 || (sizes == 1 && tensors == 0);
}

}  // namespace

RowComputation::RowComputation(const ops::Row& row, std::vector<Slot> slots, size_t inputs)
    : Computation(row.name(), inputs, may_have_one_shape(slots) && !transforms::is_of_many_calls(row)),
      row_(row),
      slots_(std::move(slots)),
      is_derivative_(transforms::is_backward(row)),
      loops_(may_be_traced(row) ? Loops::Unknown : Loops::None) {}

std::vector<ir::Value> RowComputation::build(std::span<const ir::Value> inputs) const {
  ir::Args args;
  for (const Slot& s : slots_) {
    if (s.first < 0 && !s.list) {
      args.push_back(s.fixed);
    } else if (s.size) {
      std::vector<ir::Expr> items = ir::type_of(inputs[s.first]).shape;
      for (size_t k = 0; k < items.size(); ++k)
        if (s.signs[k] != 1) items[k] = s.signs[k] == 0 ? ir::Expr(-1) : -items[k];
      args.push_back(s.list ? ir::Arg(std::move(items)) : ir::Arg(items[0]));
    } else if (!s.list) {
      args.push_back(ir::Arg(inputs[s.first]));
    } else {
      std::vector<ir::Value> items;
      size_t at = static_cast<size_t>(s.first);
      for (bool present : s.presence) items.push_back(present ? inputs[at++] : ir::Value{});
      args.push_back(ir::Arg(std::move(items)));
    }
  }
  return ops::Builder::current().call(row_, std::move(args));
}

bool RowComputation::gradients_together() const { return row_.gradients_together; }

const Computation& RowComputation::with_gradients(std::span<const InputTensor> inputs) const {
  Loops loops = loops_.load(std::memory_order_acquire);
  if (loops == Loops::None) [[likely]]
    return *this;
  if (loops == Loops::Unknown) {
    std::optional<bool> some = makes_kept(*this, inputs);
    if (!some) return *this;
    std::lock_guard lock(mutex());
    if (*some && !traced_) traced_ = std::make_unique<Traced>(*this);
    loops_.store(*some ? Loops::Some : Loops::None, std::memory_order_release);
    if (!*some) return *this;
  }
  return *traced_;
}

bool differentiated_whole(const ops::Row& row) { return static_cast<bool>(row.vjp) || row.no_gradient; }

Backward::Backward(const Computation& forward, std::vector<bool> needs, std::vector<bool> given)
    : Computation(str("backward of ", forward.name()),
                  forward.inputs() + given.size() + std::count(given.begin(), given.end(), true), forward.one_shape()),
      forward_(forward),
      needs_(std::move(needs)),
      given_(std::move(given)) {}

// A gradient lies as its operand.
std::vector<Sizes> Backward::orders_of_results(const std::vector<Sizes>& inputs) const {
  std::vector<Sizes> out;
  for (size_t i = 0; i < needs_.size(); ++i)
    if (needs_[i]) out.push_back(inputs[i]);
  return out;
}

void Backward::derive_types(std::vector<ir::Type>& types, ir::Facts& facts) const {
  size_t n = forward_.inputs();
  std::vector<ir::Type> first(types.begin(), types.begin() + n);
  forward_.derive_types(first, facts);
  ir::Graph side(ir::Level::Primitives);
  std::vector<ir::Value> values;
  for (const ir::Type& t : first) values.push_back(side.add_input(t));
  ops::Builder builder(side, facts);
  std::vector<ir::Value> results = forward_.build(values);
  std::copy(first.begin(), first.end(), types.begin());
  size_t ct = n + results.size();
  for (size_t i = 0; i < results.size(); ++i) {
    if (!results[i]) continue;
    types[n + i].shape = ir::type_of(results[i]).shape;
    if (given_[i]) types[ct++].shape = ir::type_of(results[i]).shape;
  }
}

std::vector<ir::Value> Backward::build(std::span<const ir::Value> inputs) const {
  ops::Builder& target = ops::Builder::current();
  size_t n = forward_.inputs();
  std::span<const ir::Value> results = inputs.subspan(n, given_.size()), cts = inputs.subspan(n + given_.size());

  ir::Graph side;
  std::vector<bool> side_given;
  std::vector<ir::Value> side_results;
  {
    ops::Builder builder(side, target.facts(), differentiated_whole);
    std::vector<ir::Value> values;
    for (ir::Value v : inputs.first(n)) values.push_back(side.add_input(ir::type_of(v)));
    std::vector<ir::Value> outs = forward_.build(values);
    // As when unbind's computation is tried on sizes of its own choice.
    BRASA_CHECK(outs.size() == given_.size(), "with these sizes there are ", outs.size(), " results instead of ",
                given_.size());
    side.outputs().clear();
    for (size_t i = 0; i < outs.size(); ++i) {
      if (!outs[i]) continue;
      side.add_output(outs[i]);
      side_given.push_back(given_[i]);
      side_results.push_back(results[i]);
    }
  }
  return transforms::flowing(side, needs_, side_given, inputs.first(n), cts, side_results, forward_.is_derivative());
}

}  // namespace brasa::eager
