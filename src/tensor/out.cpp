#include <algorithm>

#include <brasa/warning.h>

#include "support/error.h"
#include "tensor/autograd/record.h"
#include "tensor/dispatch.h"
#include "tensor/overlap.h"
#include "tensor/recorder.h"

// Calls that write their results into tensors that are given: `out=`.
namespace brasa::eager {
namespace {

using Kind = CallArg::Kind;

void check_out(const ops::Row& row, const Tensor& result, const Tensor& out) {
  DType has = result.scalar_type(), given = out.scalar_type();
  if (row.out != ops::Out::Own) check_castable(has, given);
  BRASA_CHECK(row.out != ops::Out::Own || has == given, "Expected out tensor to have dtype ", TypeMeta(has).name(),
              ", but got ", TypeMeta(given).name(), " instead");
  BRASA_CHECK(out.device() == result.device(), "Expected out tensor to be on ", result.device().str(), ", but got ",
              out.device().str(), " instead");
}

[[gnu::cold]] void warn_of_other_shape(IntArrayRef has, IntArrayRef needed) {
  Warning::warn(
      {"resize_output_check", __FILE__, __LINE__},
      str("An output with one or more elements was resized since it had shape ", has,
          ", which does not match the required output shape ", needed,
          ". This behavior is deprecated, and in a future PyTorch release outputs will not be resized unless "
          "they have zero elements. You can explicitly reuse an out tensor t by resizing it, inplace, to zero "
          "elements with t.resize_(0)."),
      false);
}

void write(const Operator& op, CallArgs args, const Tensor& result, Tensor& out) {
  check_out(op.row(), result, out);
  if (out.sizes() == result.sizes()) {
    check_writable(*impl_of(out));
    check_operands(op, args, 0, out);
  } else {
    if (out.numel() != 0) warn_of_other_shape(out.sizes(), result.sizes());
    out.resize_(result.sizes());
  }
  out.copy_(result);
}

// What an `out` decides where the caller leaves it open: the dtype to compute in, and of a factory the device.
class Decided {
 public:
  Decided(const Operator& op, CallArgs args, const Tensor& out) : args_(args.begin(), args.end()) {
    const auto& params = op.row().schema.params;
    auto decide = [&](ir::ParamType type, CallArg value) {
      auto p = std::find_if(params.begin(), params.end(), [&](const ir::Param& q) { return q.type == type; });
      if (p == params.end()) return;
      auto at = static_cast<size_t>(p - params.begin());
      if (args_.size() <= at) defaults_.fill_up(args_, op.row(), at + 1);
      if (at >= args.size() || args[at].kind == Kind::None) args_[at] = value;
    };
    decide(ir::ParamType::DType, out.scalar_type());
    if (out.device() != get_default_device()) decide(ir::ParamType::Device, out.device());
  }
  CallArgs args() const { return args_; }

 private:
  std::vector<CallArg> args_;
  Literals defaults_;
};

}  // namespace

void call_outs(Operator& op, CallArgs args, ArrayRef<Tensor*> outs) {
  autograd::check_out(op, args, outs);
  NoAutocast off;
  Results results;
  bool decides = op.row().out == ops::Out::Decides && outs[0]->defined();
  if (decides)
    call(op, Decided(op, args, *outs[0]).args(), results);
  else
    call(op, args, results);
  try {
    for (size_t i = 0; i < outs.size(); ++i)
      if (outs[i]->defined())
        write(op, args, results[i], *outs[i]);
      else
        *outs[i] = results[i];
  } catch (const Error& e) {
    rethrow_named(op, args, e);
  }
}

Tensor& call_out(Operator& op, CallArgs args, Tensor& out) {
  Tensor* outs[] = {&out};
  call_outs(op, args, outs);
  return out;
}

}  // namespace brasa::eager
