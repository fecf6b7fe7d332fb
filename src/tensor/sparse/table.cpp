#include "tensor/sparse/table.h"

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
  defaults_.fill_up(args_, op.row(), params.size());
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

Form function_of(ops::Sparse form) {
  using ops::Sparse;
  switch (form) {
    case Sparse::None: return nullptr;
    case Sparse::Linear: return forms::linear;
    case Sparse::Each: return forms::each;
    case Sparse::Power: return forms::power;
    case Sparse::Copy: return forms::copy;
    case Sparse::CopyFrom: return forms::copy_from;
    case Sparse::Zeros: return forms::zeros;
    case Sparse::Densified: return forms::densified;
    case Sparse::Add: return forms::add;
    case Sparse::Sub: return forms::sub;
    case Sparse::Mul: return forms::mul;
    case Sparse::Div: return forms::div;
    case Sparse::MatrixMatrix: return forms::mm;
    case Sparse::MatrixVector: return forms::mv;
    case Sparse::BatchMatrix: return forms::bmm;
    case Sparse::Matmul: return forms::matmul;
    case Sparse::AddMatrix: return forms::addmm;
    case Sparse::AddVector: return forms::addmv;
    case Sparse::LinearLayer: return forms::linear_layer;
    case Sparse::Sum: return forms::sum;
    case Sparse::SumOver: return forms::sum_over;
    case Sparse::Norm: return forms::norm;
    case Sparse::Softmax: return forms::softmax;
    case Sparse::LogSoftmax: return forms::log_softmax;
    case Sparse::Any: return forms::any;
    case Sparse::MatrixTranspose: return forms::t;
    case Sparse::Transpose: return forms::transpose;
    case Sparse::Permute: return forms::permute;
    case Sparse::Unsqueeze: return forms::unsqueeze;
    case Sparse::Select: return forms::select;
    case Sparse::Narrow: return forms::narrow;
    case Sparse::Slice: return forms::slice;
    case Sparse::IndexSelect: return forms::index_select;
    case Sparse::Cat: return forms::cat;
    case Sparse::Stack: return forms::stack;
    // A sparse gradient of a dense weight: lookup.cpp.
    case Sparse::Embedding:
    case Sparse::EmbeddingBag: return nullptr;
  }
  return nullptr;
}

void call(Operator& op, CallArgs args, Results& results) {
  Call c(op, args);
  Form run = function_of(op.row().sparse);
  if (!run) c.unsupported();
  results.resize(1);
  results[0] = run(c);
}

Tensor& call_in_place(Operator& op, CallArgs args, const Tensor& self) {
  auto& out = const_cast<Tensor&>(self);
  BRASA_CHECK(!GradMode::is_enabled() || !self.requires_grad() || !self.is_leaf(),
              "a leaf Variable that requires grad is being used in an in-place operation.");
  Call c(op, args);
  Form run = function_of(op.row().sparse);
  if (!run) c.unsupported();
  ops::Sparse form = op.row().sparse;
  if (!is_sparse(self) && (form == ops::Sparse::Add || form == ops::Sparse::Sub)) {
    Scalar alpha = c.number(2);
    BRASA_CHECK(self.sizes() == c.tensor(1).sizes(), op.row().name(),
                " in place: expected operands of equal sizes, got ", self, " and ", c.tensor(1));
    add_into(self, c.tensor(1), form == ops::Sparse::Add ? alpha : negated(alpha));
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
