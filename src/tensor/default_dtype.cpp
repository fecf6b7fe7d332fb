#include "tensor/default_dtype.h"

#include "ops/builder.h"
#include "support/error.h"
#include "tensor/tensor_impl.h"

namespace brasa::eager {

using Kind = CallArg::Kind;

namespace {

bool is_integral_tensor(const CallArg& a, bool bools) {
  return a.kind == Kind::Tensor && a.tensor->defined() && is_integral(a.tensor->scalar_type(), bools);
}

// The dtype of the call's first result where integers (or bools too) are of `as`; nothing where the row refuses them.
std::optional<DType> result_dtype(const ops::Row& row, CallArgs args, bool bools, std::optional<DType> as) {
  ir::Graph graph(ir::Level::Primitives);
  ir::Facts facts;
  ops::Builder builder(graph, facts);
  ir::Args values = literals(row, args);
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i].kind != Kind::Tensor || !args[i].tensor->defined()) continue;
    const TensorImpl* impl = impl_of(*args[i].tensor);
    ir::Type type{impl->dtype, {impl->sizes.begin(), impl->sizes.end()}, impl->weak};
    if (as && is_integral_tensor(args[i], bools)) type.dtype = *as;
    values[i] = ir::Arg(graph.add_input(std::move(type)));
  }
  try {
    return ir::type_of(builder.call(row, std::move(values)).at(0)).dtype;
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

DefaultDtypeCall::DefaultDtypeCall(Operator& op, CallArgs args, DType chosen) : args_(args.begin(), args.end()) {
  const ops::Row& row = op.row();
  bool tensors = false, floating = false;
  each_tensor(args, [&](const Tensor& t) {
    tensors = true;
    floating |= !t.defined() || !is_integral(t.scalar_type(), true);
  });
  if (!tensors && op.dtype_parameter() >= 0) {
    give_dtype(op, chosen);
    return;
  }
  int dtype = row.schema.index_of("dtype");
  bool given = dtype >= 0 && static_cast<size_t>(dtype) < args.size() && args[dtype].kind != Kind::None;
  bool computes = !row.count && !row.number_count && !row.view && !op.mutates() && !op.memory();
  if (tensors && !floating && !given && computes && is_floating(chosen)) convert_operands(op, chosen);
}

// What a factory gives without a dtype: the kind of its numbers, or the default dtype.
void DefaultDtypeCall::give_dtype(Operator& op, DType chosen) {
  auto i = static_cast<size_t>(op.dtype_parameter());
  if (i < args_.size() && args_[i].kind != Kind::None) return;
  if (!op.row().random) {
    DType natural = result_dtype(op.row(), args_, false, std::nullopt).value_or(DType::Float32);
    if (natural == DType::Complex64 && chosen == DType::Float64)
      chosen = DType::Complex128;
    else if (natural != DType::Float32)
      chosen = natural;
  }
  if (args_.size() <= i) args_.resize(i + 1);
  args_[i] = CallArg(chosen);
  changed_ = true;
}

// Integers that become floating numbers do so before the call: masks and indices stay, because with them converted the row would refuse
// the call or give something else.
void DefaultDtypeCall::convert_operands(Operator& op, DType chosen) {
  auto natural = result_dtype(op.row(), args_, false, std::nullopt);
  if (natural != DType::Float32 && natural != DType::Complex64) return;
  DType wanted = natural == DType::Float32 ? chosen : chosen == DType::Float64 ? DType::Complex128 : DType::Complex64;
  for (bool bools : {false, true}) {
    if (result_dtype(op.row(), args_, bools, chosen) != wanted) continue;
    converted_.reserve(args_.size());
    for (CallArg& a : args_)
      if (is_integral_tensor(a, bools)) {
        converted_.push_back(a.tensor->to(chosen));
        a = CallArg(converted_.back());
        changed_ = true;
      }
    return;
  }
}

}  // namespace brasa::eager
