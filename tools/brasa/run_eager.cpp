#include <brasa/autograd.h>
#include <brasa/call.h>
#include <brasa/factories.h>

#include <algorithm>
#include <cstring>
#include <deque>

#include "ops/primitives/interp.h"
#include "support/error.h"
#include "vectors.h"

namespace brasa::verify {

using ops::Array;

namespace {

Tensor to_tensor(const CallTensor& t) {
  Tensor out = empty_strided(t.array.shape, t.strides, t.array.dtype);
  std::vector<std::byte> bytes = strided_storage(t.array, t.strides);
  if (!bytes.empty()) std::memcpy(out.data_ptr(), bytes.data(), bytes.size());
  return out;
}

Tensor to_tensor(const Array& a) { return to_tensor(CallTensor{a, ops::row_major(a.shape), false}); }

Array to_array(const Tensor& t) {
  Tensor c = t.detach().contiguous();
  Array out = ops::make_array(t.scalar_type(), t.sizes().vec());
  if (!out.data.empty()) std::memcpy(out.data.data(), c.data_ptr(), out.data.size());
  return out;
}

Scalar to_scalar(const Array& a) {
  if (a.dtype == DType::Bool) return Scalar(ops::get_int(a, 0) != 0);
  return a.dtype == DType::Int64 ? Scalar(ops::get_int(a, 0)) : Scalar(ops::get(a, 0));
}

MemoryFormat memory_format(const std::string& name) {
  if (name == "channels_last") return MemoryFormat::ChannelsLast;
  if (name == "channels_last_3d") return MemoryFormat::ChannelsLast3d;
  return name == "preserve_format" ? MemoryFormat::Preserve : MemoryFormat::Contiguous;
}

// Arguments only point to what they pass, so it is kept here.
class Packed {
 public:
  explicit Packed(const Call& call) {
    for (size_t i = 0; i < call.tensors.size(); ++i) {
      const CallTensor& t = call.tensors[i];
      tensors.push_back(t.weak ? Tensor() : to_tensor(t));
      if (call.needs_gradient[i]) tensors.back().set_requires_grad(true);
    }
    for (size_t i = 0; i < call.args.size(); ++i) args.push_back(pack(call, call.args[i], call.row->schema.params[i]));
  }
  std::vector<Tensor> tensors;
  std::vector<brasa::CallArg> args;

 private:
  brasa::CallArg pack(const Call& call, const verify::CallArg& a, const ir::Param& p) {
    if (auto* one = std::get_if<int>(&a)) {
      if (*one < 0) return {};
      if (call.tensors[*one].weak) return scalars_.emplace_back(to_scalar(call.tensors[*one].array));
      return tensors[*one];
    }
    if (auto* list = std::get_if<std::vector<int>>(&a)) {
      if (p.optional_items) {
        auto& items = optional_lists_.emplace_back();
        for (int i : *list) items.push_back(i < 0 ? std::nullopt : std::optional(tensors[i]));
        return brasa::CallArg(ArrayRef<std::optional<Tensor>>(items));
      }
      auto& items = lists_.emplace_back();
      for (int i : *list) items.push_back(tensors.at(i));
      return items;
    }
    return pack(std::get<ir::Arg>(a), p);
  }

  brasa::CallArg pack(const ir::Arg& a, const ir::Param& p) {
    using ir::ParamType;
    if (a.is_none() || p.type == ParamType::Layout || p.type == ParamType::Generator) return {};
    if (auto* v = a.get_if<bool>())
      return p.type == ParamType::Scalar ? brasa::CallArg(scalars_.emplace_back(*v)) : brasa::CallArg(*v);
    if (auto* v = a.get_if<double>())
      return p.type == ParamType::Scalar ? brasa::CallArg(scalars_.emplace_back(*v)) : brasa::CallArg(*v);
    if (auto* v = a.get_if<ir::Expr>()) {
      if (p.type == ParamType::Scalar) return scalars_.emplace_back(v->constant());
      if (p.type == ParamType::MemoryFormat) return {};
      return v->constant();
    }
    if (auto* v = a.get_if<DType>()) return *v;
    if (auto* v = a.get_if<std::string>()) {
      if (p.type == ParamType::MemoryFormat) return memory_format(*v);
      if (p.type == ParamType::Device) return Device(std::string_view(*v));
      return std::string_view(strings_.emplace_back(*v));
    }
    if (auto* v = a.get_if<std::vector<ir::Expr>>()) {
      if (p.type == ParamType::Tensor) return lists_.emplace_back();
      auto& items = ints_.emplace_back(ops::constants(*v));
      return items;
    }
    if (auto* v = a.get_if<std::vector<double>>()) return brasa::CallArg(ArrayRef<double>(doubles_.emplace_back(*v)));
    if (auto* v = a.get_if<std::vector<bool>>()) {
      auto& items = bools_.emplace_back(v->size());
      std::copy(v->begin(), v->end(), items.begin());
      return brasa::CallArg(ArrayRef<bool>(items.data(), items.size()));
    }
    throw Unsupported{str("argument ", p.name)};
  }

  template <class T>
  struct Block {
    explicit Block(size_t n) : items(new T[n]), n(n) {}
    T* begin() { return items.get(); }
    T* data() { return items.get(); }
    size_t size() const { return n; }
    std::unique_ptr<T[]> items;
    size_t n;
  };
  std::deque<Scalar> scalars_;
  std::deque<std::string> strings_;
  std::deque<std::vector<int64_t>> ints_;
  std::deque<std::vector<double>> doubles_;
  std::deque<Block<bool>> bools_;
  std::deque<std::vector<Tensor>> lists_;
  std::deque<std::vector<std::optional<Tensor>>> optional_lists_;
};

}  // namespace

Outcome run_eager(const Call& call) {
  Packed packed(call);
  AutoGradMode recording(!call.cotangents.empty());
  std::vector<Tensor> results = brasa::call(call.row->name(), packed.args);
  Outcome out;
  for (const Tensor& t : results) out.outputs.push_back(t.defined() ? to_array(t) : Array{});
  if (call.cotangents.empty()) return out;

  std::vector<Tensor> outputs, cotangents, inputs;
  for (size_t i = 0; i < results.size(); ++i)
    if (i < call.cotangents.size() && call.cotangents[i] && results[i].requires_grad()) {
      outputs.push_back(results[i]);
      cotangents.push_back(to_tensor(*call.cotangents[i]));
    }
  for (size_t i = 0; i < call.tensors.size(); ++i)
    if (call.needs_gradient[i]) inputs.push_back(packed.tensors[i]);
  std::vector<Tensor> gradients(inputs.size());
  if (!outputs.empty() && !inputs.empty())
    gradients = autograd::grad(outputs, inputs, cotangents, std::nullopt, false, true);
  size_t k = 0;
  for (size_t i = 0; i < call.tensors.size(); ++i) {
    out.gradients.emplace_back();
    if (!call.needs_gradient[i]) continue;
    const Tensor& g = gradients[k++];
    if (g.defined()) out.gradients.back() = to_array(g);
  }
  return out;
}

}  // namespace brasa::verify
