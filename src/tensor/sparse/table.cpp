#include "tensor/sparse/table.h"

#include <unordered_map>

#include <brasa/autograd.h>
#include <brasa/factories.h>

#include "support/error.h"
#include "tensor/autograd/record.h"
#include "tensor/parse.h"

// From a call with a sparse operand to the function for its row.
namespace brasa::eager::sparse {

Call::Call(Operator& op, CallArgs args) : op_(op), args_(args.begin(), args.end()) {
  const auto& params = op.row().schema.params;
  BRASA_CHECK(args.size() <= params.size(), op.row().name(), ": takes ", params.size(), " arguments, got ",
              args.size());
  defaults_.fill_up(args_, params, params.size());
  made_.reserve(args_.size());
}

const Tensor& Call::tensor(size_t i) {
  if (args_[i].kind == CallArg::Kind::Tensor) return *args_[i].tensor;
  if (!is_number(args_[i])) unsupported();
  return made_.emplace_back(weak_tensor(number_of(args_[i])));
}
std::vector<Tensor> Call::tensors(size_t i) const {
  if (args_[i].kind != CallArg::Kind::Tensors) unsupported();
  return {args_[i].tensor, args_[i].tensor + args_[i].size};
}
Scalar Call::number(size_t i) const {
  if (!is_number(args_[i])) unsupported();
  return number_of(args_[i]);
}
std::vector<int64_t> Call::integers(size_t i) const {
  if (args_[i].kind == CallArg::Kind::None) return {};
  if (is_number(args_[i])) return {number_of(args_[i]).toLong()};
  if (args_[i].kind != CallArg::Kind::Ints) unsupported();
  return {args_[i].ints, args_[i].ints + args_[i].size};
}
std::optional<DType> Call::dtype(size_t i) const {
  if (args_[i].kind != CallArg::Kind::DType) return std::nullopt;
  return static_cast<DType>(args_[i].integer);
}
int64_t Call::wrapped(int64_t d, int64_t rank) const {
  if (d < -rank || d >= rank)
    fail_index(str(op_.row().name(), ": Dimension out of range (expected to be in range of [", -rank, ", ", rank - 1,
                   "], but got ", d, ")"));
  return d < 0 ? d + rank : d;
}

Tensor Call::with(size_t i, const Tensor& t) const {
  std::vector<CallArg> args = args_;
  args[i] = CallArg(t);
  return call_one(op_, args);
}
Tensor Call::with(size_t i, const Tensor& t, size_t j, const Tensor& u) const {
  std::vector<CallArg> args = args_;
  args[i] = CallArg(t);
  args[j] = CallArg(u);
  return call_one(op_, args);
}

void Call::unsupported(std::string_view why) const {
  std::string what = str(op_.row().name(), " is not there for (");
  bool first = true;
  auto add = [&](const Tensor& t) {
    what += str(first ? "" : ", ", t);
    first = false;
  };
  for (const CallArg& a : args_) {
    if (a.kind == CallArg::Kind::Tensor) add(*a.tensor);
    if (a.kind == CallArg::Kind::Tensors)
      for (uint32_t i = 0; i < a.size; ++i) add(a.tensor[i]);
  }
  what += ")";
  if (!why.empty()) what += str(": ", why);
  fail(what + "; to_dense() makes a dense tensor of a sparse one");
}

namespace {

std::vector<std::span<const Entry>> lists() {
  return {elementwise_entries(), arithmetic_entries(), product_entries(), reduction_entries(), shape_entries()};
}

using Run = Tensor (*)(Call&);
Run entry_of(const Operator& op) {
  static const auto* by_row = [] {
    auto* m = new std::unordered_map<std::string_view, Run>;
    for (auto list : lists())
      for (const Entry& e : list) m->emplace(e.row, e.run);
    return m;
  }();
  auto it = by_row->find(op.row().name());
  return it == by_row->end() ? nullptr : it->second;
}

// Gives `self` the value of `value`.
void replace(const Tensor& self, const Tensor& value, const Operator& op) {
  BRASA_CHECK(is_sparse(value) && value.sizes() == self.sizes(), op.row().name(), " in place: the result, ", value,
              ", does not fit into ", self);
  Tensor v = value.layout() == self.layout() ? value : value.to(TensorOptions().layout(self.layout()));
  v = v.to(self.scalar_type());
  impl_of(self)->sparse = std::make_unique<SparseParts>(parts_of(v));
  impl_of(self)->storage->bump_version();
}

}  // namespace

std::vector<std::string_view> entry_names() {
  std::vector<std::string_view> out;
  for (auto list : lists())
    for (const Entry& e : list) out.push_back(e.row);
  return out;
}

void call(Operator& op, CallArgs args, Results& results) {
  Call c(op, args);
  Run run = entry_of(op);
  if (!run) c.unsupported();
  results.resize(1);
  results[0] = run(c);
}

Tensor& call_in_place(Operator& op, CallArgs args, const Tensor& self) {
  auto& out = const_cast<Tensor&>(self);
  BRASA_CHECK(!GradMode::is_enabled() || !self.requires_grad() || !self.is_leaf(),
              "a leaf Variable that requires grad is being used in an in-place operation.");
  Call c(op, args);
  Run run = entry_of(op);
  if (!run) c.unsupported();
  std::string_view name = op.row().name();
  if (!is_sparse(self) && (name == "aten::add.Tensor" || name == "aten::sub.Tensor")) {
    Scalar alpha = c.number(2);
    BRASA_CHECK(self.sizes() == c.tensor(1).sizes(), name, " in place: expected operands of equal sizes, got ", self,
                " and ", c.tensor(1));
    add_into(self, c.tensor(1), name == "aten::add.Tensor" ? alpha : negated(alpha));
    return out;
  }
  Tensor value = run(c);
  if (is_sparse(self))
    replace(self, value, op);
  else
    self.copy_(value);
  return out;
}

}  // namespace brasa::eager::sparse
