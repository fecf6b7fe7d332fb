#include <brasa/call.h>

#include "import/frame.h"
#include "support/lazy.h"

// Copies, conversions and views, whose memory the rest of a program may rely on. The operator table says what their values are; how
// these lie in memory, the tensor's methods decide.
namespace brasa::import {
namespace {

template <class T>
std::optional<T> option(const Frame& f, const Node& n, std::string_view name) {
  const Argument* a = f.named(n, name);
  const T* v = a ? std::get_if<T>(&a->value) : nullptr;
  if constexpr (std::is_same_v<T, Device>)
    return v ? std::optional(f.program().device.value_or(*v)) : std::nullopt;
  else
    return v ? std::optional(*v) : std::nullopt;
}
bool flag(const Frame& f, const Node& n, std::string_view name) {
  const Argument* a = f.named(n, name);
  const Scalar* v = a ? std::get_if<Scalar>(&a->value) : nullptr;
  return v && v->toBool();
}

void clone(Frame& f, const Node& n) {
  f.set(n, 0, f.tensor(f.argument(n, 0)).clone(option<MemoryFormat>(f, n, "memory_format")));
}
void contiguous(Frame& f, const Node& n) {
  auto format = option<MemoryFormat>(f, n, "memory_format").value_or(MemoryFormat::Contiguous);
  f.set(n, 0, f.tensor(f.argument(n, 0)).contiguous(format));
}
void convert(Frame& f, const Node& n, const TensorOptions& options, bool copy) {
  f.set(n, 0,
        f.tensor(f.argument(n, 0))
            .to(options, flag(f, n, "non_blocking"), copy, option<MemoryFormat>(f, n, "memory_format")));
}
TensorOptions options_of(const Frame& f, const Node& n) {
  TensorOptions options;
  if (auto dtype = option<DType>(f, n, "dtype")) options = options.dtype(*dtype);
  if (auto device = option<Device>(f, n, "device")) options = options.device(*device);
  if (auto layout = option<Layout>(f, n, "layout")) options = options.layout(*layout);
  return options;
}
void to(Frame& f, const Node& n) { convert(f, n, options_of(f, n), flag(f, n, "copy")); }
void to_copy(Frame& f, const Node& n) { convert(f, n, options_of(f, n), true); }
void to_other(Frame& f, const Node& n) {
  Tensor other = f.tensor(f.argument(n, 1));
  convert(f, n, TensorOptions(other.scalar_type()).device(other.device()), flag(f, n, "copy"));
}
// Where Brasa laid a result out in another order than PyTorch did, a copy stands for the view.
void view(Frame& f, const Node& n) {
  NamedInts sizes(f, f.argument(n, 1));
  f.set(n, 0, call("aten::reshape", {f.tensor(f.argument(n, 0)), sizes.argument()}).at(0));
}
// A view that takes its operand's place.
void transpose_in_place(Frame& f, const Node& n) {
  int64_t a = f.number(f.argument(n, 1)).toLong(), b = f.number(f.argument(n, 2)).toLong();
  f.set(n, 0, f.tensor(f.argument(n, 0)).transpose_(a, b));
}
void t_in_place(Frame& f, const Node& n) { f.set(n, 0, f.tensor(f.argument(n, 0)).t_()); }
void squeeze_in_place(Frame& f, const Node& n) {
  Tensor t = f.tensor(f.argument(n, 0));
  f.set(n, 0, n.arguments.size() < 2 ? t.squeeze_() : t.squeeze_(f.number(f.argument(n, 1)).toLong()));
}
void unsqueeze_in_place(Frame& f, const Node& n) {
  f.set(n, 0, f.tensor(f.argument(n, 0)).unsqueeze_(f.number(f.argument(n, 1)).toLong()));
}
// What nobody wrote is 0: so a graph makes it, with the graph's sizes, and each call gives the same.
void empty_like(Frame& f, const Node& n) {
  Tensor like = f.tensor(f.argument(n, 0));
  f.set(n, 0, zeros_like(like, options_of(f, n)));
}
void empty(Frame& f, const Node& n) {
  NamedInts sizes(f, f.argument(n, 0));
  f.set(n, 0,
        call("aten::zeros", {sizes.argument()},
             {{"dtype", option<DType>(f, n, "dtype")}, {"device", option<Device>(f, n, "device")}})
            .at(0));
}

}  // namespace

Handler copy_handler(const std::string& target) {
  static constinit Lazy<Handlers> kTable([] {
    return Handlers{
        {"clone.default", clone},
        {"contiguous.default", contiguous},
        {"_to_copy.default", to_copy},
        {"to.dtype", to},
        {"to.device", to},
        {"to.dtype_layout", to},
        {"to.other", to_other},
        {"view.default", view},
        {"_unsafe_view.default", view},
        {"transpose_.default", transpose_in_place},
        {"swapaxes_.default", transpose_in_place},
        {"swapdims_.default", transpose_in_place},
        {"t_.default", t_in_place},
        {"squeeze_.default", squeeze_in_place},
        {"squeeze_.dim", squeeze_in_place},
        {"unsqueeze_.default", unsqueeze_in_place},
        {"empty_like.default", empty_like},
        {"empty.memory_format", empty},
    };
  });
  return find(*kTable, "torch.ops.aten.", target);
}

}  // namespace brasa::import
