#include "tensor/recorded_call.h"

#include <algorithm>

#include "tensor/execute.h"
#include "tensor/parse.h"
#include "tensor/result_order.h"
#include "tensor/tensor_impl.h"

namespace brasa::eager {

using Kind = CallArg::Kind;

Tensor new_key() {
  static constexpr int64_t kTwo[] = {2};
  Tensor key = make_tensor(kTwo, DType::Int64);
  impl_of(key)->storage->set_travels();
  return key;
}

void fill(const Tensor& key, Generator::Key k) {
  auto* at = static_cast<int64_t*>(impl_of(key)->storage->data());
  at[0] = k.seed;
  at[1] = k.offset;
}

size_t generator_of(const ops::Row& row) {
  const auto& params = row.schema.params;
  auto it =
      std::find_if(params.begin(), params.end(), [](const ir::Param& p) { return p.type == ir::ParamType::Generator; });
  return static_cast<size_t>(it - params.begin());
}

bool draws(const ops::Row& row, CallArgs args) {
  Parsed p;
  const Tensor* key = args[generator_of(row)].tensor;
  const RowComputation& computation = computation_of(op(row), args, p);
  std::vector<bool> reads = reads_of(computation, p.inputs);
  for (size_t i = 0; i < reads.size(); ++i)
    if (p.inputs[i].tensor == key) return reads[i];
  return false;
}

RecordedCall::RecordedCall(Recorder& recorder, Operator& op, CallArgs args)
    : recorder_(recorder), op_(op), args_(args) {
  const auto& params = op.parameters();
  for (size_t i = 0; i < args.size() && i < params.size(); ++i)
    if (is_number(args[i]) && params[i].type == ir::ParamType::Tensor && !params[i].list)
      replace(i, weak_tensor(number_of(args[i])));
  if (!op.row().random) return;
  size_t at = generator_of(op.row());
  if (at < args.size() && args[at].kind == Kind::Tensor) return;  // a key taken before
  const Tensor& key = replace(at, new_key());
  changed_->key = key;
  changed_->stream = at < args.size() && args[at].kind == Kind::Generator ? *args[at].generator : default_generator();
}

void RecordedCall::run(Results& out) {
  bool random = changed_ && changed_->stream;
  // Some recorders run the call now; how far the stream moves on is known only then.
  if (random) fill(changed_->key, changed_->stream->take(0));
  recorder_.call(op_.row(), {args_.data(), args_.size()}, out);
  if (random) {
    bool any = out.size() > 0 && draws(op_.row(), args_);
    auto drawn = any ? static_cast<uint64_t>(out[0].numel()) : 0;
    fill(changed_->key, changed_->stream->take(drawn));
    recorder_.drew(changed_->key, *changed_->stream, drawn);
  }
}

void RecordedCall::lay_out(const Results& results) const {
  if (Sizes order = order_of_result(op_, args_); !order.empty())
    return recorder_.lay_out(results[0], strides_in_order(impl_of(results[0])->sizes, order));
  auto strided = [](const Tensor& t) { return t.defined() && !impl_of(t)->contiguous; };
  bool any = false;
  each_tensor(args_, [&](const Tensor& t) { any = any || strided(t); });
  if (op_.row().random || !any) return;
  Parsed p;
  const RowComputation& computation = computation_of(op_, args_, p);
  ResultLayout layout = layout_of_results(computation, p.inputs);
  for (size_t i = 0; i < results.size() && !layout.strides.empty(); ++i)
    if (results[i].defined() && impl_of(results[i])->sizes == layout.sizes)
      recorder_.lay_out(results[i], layout.strides);
  std::vector<Sizes> orders = orders_of_results(computation, p.inputs);
  for (size_t i = 0; i < std::min(results.size(), orders.size()); ++i)
    if (results[i].defined() && !orders[i].empty() && results[i].dim() == std::ssize(orders[i]))
      recorder_.lay_out(results[i], strides_in_order(impl_of(results[i])->sizes, orders[i]));
}

const Tensor& RecordedCall::replace(size_t at, Tensor t) {
  if (!changed_) changed_ = std::make_unique<Changed>(args_.vec());
  Changed& c = *changed_;
  c.defaults.fill_up(c.args, op_.row(), at + 1);
  c.args[at] = CallArg(c.tensors.emplace_front(std::move(t)));
  args_ = c.args;
  return c.tensors.front();
}

}  // namespace brasa::eager
