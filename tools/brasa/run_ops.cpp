#include "run_ops.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>

#include <brasa/autograd.h>
#include <brasa/brasa.h>
#include <brasa/compile.h>

namespace brasa::verify {
namespace {

// The host's memory as a tensor.
Tensor borrowed(const std::byte* bytes, IntArrayRef shape, DType dtype) {
  return from_blob(const_cast<std::byte*>(bytes), shape, dtype);
}

// On the default device, with the array's strides, in a storage that is just large enough.
Tensor to_tensor(const Array& a) {
  Tensor rows = borrowed(a.bytes.data(), a.shape, a.dtype);
  if (a.strides.size() != a.shape.size()) return rows.to(get_default_device(), a.dtype, false, /*copy=*/true);
  Tensor out = empty_strided(a.shape, a.strides, a.dtype);
  if (rows.numel() == 0) return out;
  // By hand, because copy_ refuses elements that share memory.
  int64_t size = size_of(a.dtype), extent = 1;
  for (size_t d = 0; d < a.shape.size(); ++d) extent += (a.shape[d] - 1) * a.strides[d];
  std::vector<std::byte> memory(static_cast<size_t>(extent * size));
  for (int64_t i = 0; i < rows.numel(); ++i) {
    int64_t at = 0, rest = i;
    for (size_t d = a.shape.size(); d-- > 0; rest /= a.shape[d]) at += rest % a.shape[d] * a.strides[d];
    std::memcpy(memory.data() + at * size, a.bytes.data() + i * size, static_cast<size_t>(size));
  }
  out.as_strided({extent}, {1}).copy_(borrowed(memory.data(), {extent}, a.dtype));
  return out;
}

Array to_array(const Tensor& t) {
  Array out{t.scalar_type(), t.sizes().vec(), {}, t.strides().vec()};
  Tensor rows = t.detach().cpu().contiguous();
  out.bytes.resize(static_cast<size_t>(rows.numel() * size_of(out.dtype)));
  if (!out.bytes.empty()) std::memcpy(out.bytes.data(), rows.data_ptr(), out.bytes.size());
  return out;
}

// The references were made on the CPU: it stands for the device that is verified.
Device device_named(const std::string& name) { return name == "cpu" ? get_default_device() : Device(name); }

void check_there(const Tensor& t, const std::string& what) {
  if (t.device() != get_default_device())
    throw Error(what + " is on " + t.device().str() + ", expected " + get_default_device().str());
}

// Arguments only point to what they pass, so it is kept here.
class Arguments {
 public:
  Arguments(const Entry& entry, const std::vector<Tensor>& tensors) : tensors_(tensors) {
    for (const Value& v : entry.args) args.push_back(argument(v));
    for (auto& [name, v] : entry.kwargs) named.push_back({name, argument(v)});
  }
  std::vector<CallArg> args;
  std::vector<NamedArg> named;

 private:
  CallArg argument(const Value& value) {
    return std::visit([this](const auto& v) { return pack(v); }, value.v);
  }
  CallArg pack(std::monostate) { return {}; }
  CallArg pack(bool v) { return scalars_.emplace_back(v); }
  CallArg pack(int64_t v) { return scalars_.emplace_back(v); }
  CallArg pack(double v) { return scalars_.emplace_back(v); }
  CallArg pack(std::complex<double> v) { return scalars_.emplace_back(v); }
  CallArg pack(const std::string& v) { return std::string_view(v); }
  CallArg pack(DType v) { return v; }
  CallArg pack(const DeviceName& v) { return device_named(v.name); }
  CallArg pack(const LayoutName&) { return kStrided; }
  CallArg pack(TensorAt v) { return tensors_[v.at]; }
  CallArg pack(const MemoryFormatName& v) {
    if (v.name == "channels_last") return MemoryFormat::ChannelsLast;
    if (v.name == "channels_last_3d") return MemoryFormat::ChannelsLast3d;
    return v.name == "preserve_format" ? MemoryFormat::Preserve : MemoryFormat::Contiguous;
  }
  // Among numbers a bool is one, too.
  static std::optional<int64_t> whole(const Value& v) {
    if (auto* b = std::get_if<bool>(&v.v)) return *b;
    auto* n = std::get_if<int64_t>(&v.v);
    return n ? std::optional(*n) : std::nullopt;
  }
  CallArg pack(const std::vector<Value>& list) {
    size_t bools = 0, ints = 0, tensors = 0;
    for (const Value& item : list) {
      bools += std::holds_alternative<bool>(item.v);
      ints += whole(item).has_value();
      tensors += std::holds_alternative<TensorAt>(item.v) || std::holds_alternative<std::monostate>(item.v);
    }
    size_t n = list.size();
    if (n && bools == n) {
      auto& items = bools_.emplace_back(new bool[n]);
      for (size_t i = 0; i < n; ++i) items[i] = std::get<bool>(list[i].v);
      return ArrayRef<bool>(items.get(), n);
    }
    if (ints == n) {
      auto& items = ints_.emplace_back();
      for (const Value& item : list) items.push_back(*whole(item));
      return items;
    }
    if (tensors == n) {
      auto& items = lists_.emplace_back();
      for (const Value& item : list) {
        auto* t = std::get_if<TensorAt>(&item.v);
        items.push_back(t ? std::optional(tensors_[t->at]) : std::nullopt);
      }
      return ArrayRef<std::optional<Tensor>>(items);
    }
    auto& items = doubles_.emplace_back();
    for (const Value& item : list) {
      auto number = whole(item);
      items.push_back(number ? static_cast<double>(*number) : std::get<double>(item.v));
    }
    return ArrayRef<double>(items);
  }

  const std::vector<Tensor>& tensors_;
  std::deque<Scalar> scalars_;
  std::deque<std::vector<int64_t>> ints_;
  std::deque<std::vector<double>> doubles_;
  std::deque<std::unique_ptr<bool[]>> bools_;
  std::deque<std::vector<std::optional<Tensor>>> lists_;
};

struct Results {
  std::vector<Tensor> outputs, gradients;  // gradients of the tensors that ask for one
};

Results with_gradients(const std::string& op, const Arguments& arguments, const std::vector<Tensor>& asked,
                       const std::vector<std::optional<Tensor>>& cotangents) {
  Results out;
  out.outputs = call(op, arguments.args, arguments.named);
  std::vector<Tensor> outputs, given;
  for (size_t i = 0; i < cotangents.size() && i < out.outputs.size(); ++i)
    if (cotangents[i] && out.outputs[i].requires_grad()) {
      outputs.push_back(out.outputs[i]);
      given.push_back(*cotangents[i]);
    }
  out.gradients.resize(asked.size());
  if (!outputs.empty() && !asked.empty())
    out.gradients = autograd::grad(outputs, asked, given, std::nullopt, false, true);
  return out;
}

}  // namespace

std::vector<std::string> backends() {
  std::vector<std::string> all = list_backends();
  if (std::find(all.begin(), all.end(), "eager") == all.end()) all.insert(all.begin(), "eager");
  return all;
}

std::function<void()> repeated(const std::string& op, Entry entry, const std::string& backend) {
  struct Call {
    Entry entry;  // the arguments point to its names and words
    std::vector<Tensor> tensors, asked;
    std::vector<std::optional<Tensor>> cotangents;
    std::optional<Arguments> arguments;
  };
  auto c = std::make_shared<Call>();
  for (size_t i = 0; i < entry.tensors.size(); ++i) {
    c->tensors.push_back(to_tensor(entry.tensors[i]));
    if (entry.needs_gradient[i]) c->asked.push_back(c->tensors.back().set_requires_grad(true));
  }
  entry.tensors.clear();
  c->entry = std::move(entry);
  c->arguments.emplace(c->entry, c->tensors);
  if (!c->asked.empty())
    for (const Tensor& t : call(op, c->arguments->args, c->arguments->named))
      c->cotangents.push_back(t.defined() && t.requires_grad() ? std::optional(ones_like(t)) : std::nullopt);
  auto body = [c, op] { return with_gradients(op, *c->arguments, c->asked, c->cotangents); };
  std::function<Results()> f = body;
  if (backend != "eager") f = [compiled = compile(body, {.backend = backend})]() mutable { return compiled(); };
  return [c, f] {
    AutoGradMode recording(!c->asked.empty());
    f();
  };
}

Outcome run(const std::string& op, const Entry& entry, const std::string& backend) {
  std::vector<Tensor> tensors, asked;
  for (size_t i = 0; i < entry.tensors.size(); ++i) {
    tensors.push_back(to_tensor(entry.tensors[i]));
    if (entry.needs_gradient[i]) asked.push_back(tensors.back().set_requires_grad(true));
  }
  std::vector<std::optional<Tensor>> cotangents;
  for (auto& c : entry.cotangents) cotangents.push_back(c ? std::optional(to_tensor(*c)) : std::nullopt);
  Arguments arguments(entry, tensors);
  AutoGradMode recording(!cotangents.empty());
  auto body = [&] { return with_gradients(op, arguments, asked, cotangents); };
  Results results = backend == "eager" ? body() : compile(body, {.backend = backend})();

  Outcome out;
  for (size_t i = 0; i < results.outputs.size(); ++i) {
    const Tensor& t = results.outputs[i];
    bool number = i < entry.numbers.size() && entry.numbers[i];
    if (t.defined() && !number) check_there(t, "result " + std::to_string(i));
    out.outputs.push_back(t.defined() ? std::optional(to_array(t)) : std::nullopt);
  }
  for (const Tensor& t : tensors) out.inputs_after.push_back(to_array(t));
  if (cotangents.empty()) return out;
  size_t k = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    out.gradients.emplace_back();
    if (!entry.needs_gradient[i]) continue;
    const Tensor& g = results.gradients[k++];
    if (!g.defined()) continue;
    check_there(g, "gradient of tensor " + std::to_string(i));
    out.gradients.back() = to_array(g);
  }
  return out;
}

}  // namespace brasa::verify
