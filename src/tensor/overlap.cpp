#include "tensor/overlap.h"

#include <algorithm>

#include <brasa/factories.h>
#include <brasa/ops_generated.h>

#include "ops/builder.h"
#include "support/error.h"
#include "tensor/args.h"
#include "tensor/geometry.h"
#include "tensor/in_place.h"

namespace brasa::eager {
namespace {

bool same_elements(const TensorImpl& a, const TensorImpl& b) {
  return a.offset == b.offset && a.sizes == b.sizes && a.strides == b.strides && a.dtype == b.dtype;
}

bool meet(const TensorImpl& a, const TensorImpl& b) {
  if (a.storage->root() != b.storage->root() || a.numel == 0 || b.numel == 0) return false;
  auto begin = [](const TensorImpl& t) { return t.offset * size_of(t.dtype); };
  auto end = [&](const TensorImpl& t) { return begin(t) + extent_of(t.sizes, t.strides) * size_of(t.dtype); };
  return begin(a) < end(b) && begin(b) < end(a);
}

// What stands for an argument in a graph: a tensor, or a number where the row takes a tensor.
std::optional<ir::Type> type_of_operand(const ops::Row& row, CallArgs args, size_t i) {
  if (args[i].kind == CallArg::Kind::Tensor) {
    const TensorImpl* impl = impl_of(*args[i].tensor);
    return ir::Type{impl->dtype, {impl->sizes.begin(), impl->sizes.end()}, impl->weak};
  }
  const ir::Param& p = row.schema.params[i];
  if (!is_number(args[i]) || p.type != ir::ParamType::Tensor || p.list) return std::nullopt;
  return ir::Type{number_of(args[i]).type(), {}, true};
}

bool is_list_of_tensors(const ir::Param& p) { return p.list && p.type == ir::ParamType::Tensor; }

// A call as a graph, to see what its result reads.
class Reads {
 public:
  Reads(const ops::Row& row, CallArgs args) : graph_(ir::Level::Primitives) {
    if (row.random || std::any_of(row.schema.params.begin(), row.schema.params.end(), is_list_of_tensors)) return;
    ops::Builder builder(graph_, facts_);
    ir::Args values = literals(row, args);
    for (size_t i = 0; i < args.size(); ++i) {
      std::optional<ir::Type> type = type_of_operand(row, args, i);
      if (!type) continue;
      ir::Value input = graph_.add_input(*type);
      if (i == 0) self_ = input;
      values[i] = ir::Arg(input);
    }
    try {
      result_ = builder.call(row, std::move(values)).at(0);
      graph_.add_output(result_);
    } catch (const Error&) {
      result_ = {};  // wrong: the call itself will say so
    }
  }

  /// Each element depends on those in its place alone.
  bool by_element() const {
    if (!result_) return false;
    auto nodes = ir::live_nodes(graph_);
    return std::all_of(nodes.begin(), nodes.end(), [](const ir::Node* n) {
      ops::Kind k = ops::kind_of(*n);
      return k == ops::Kind::Input || k == ops::Kind::Pointwise || ops::is_leaf(k) || k == ops::Kind::Broadcast ||
             k == ops::Kind::Reshape;
    });
  }
  /// Each element stays, or gets a number, whatever is in the tensor.
  bool fills() const { return result_ && fills(result_); }

 private:
  bool fills(ir::Value v) const {
    if (v == self_ || is_number(v)) return true;
    ops::Kind k = ops::kind_of(*v.node);
    std::vector<ir::Value> in = v.node->inputs();
    if (k == ops::Kind::Reshape || k == ops::Kind::Transpose) return fills(in[0]);
    bool choice = k == ops::Kind::Pointwise && ops::row_of(*v.node).scalar == ops::ScalarOp::Select;
    return choice && !reads_self(in[0]) && fills(in[1]) && fills(in[2]);
  }
  bool reads_self(ir::Value v) const {
    std::vector<ir::Value> in = v.node->inputs();
    return v == self_ || std::any_of(in.begin(), in.end(), [&](ir::Value i) { return reads_self(i); });
  }
  static bool is_number(ir::Value v) {
    ops::Kind k = ops::kind_of(*v.node);
    if (k == ops::Kind::Input) return ir::type_of(v).shape.empty();
    if (k != ops::Kind::Full && k != ops::Kind::Pointwise && k != ops::Kind::Broadcast) return false;
    std::vector<ir::Value> in = v.node->inputs();
    return std::all_of(in.begin(), in.end(), is_number);
  }

  ir::Graph graph_;
  ir::Facts facts_;
  ir::Value self_, result_;
};

[[noreturn]] void fail_writable() {
  fail(
      "unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please "
      "clone() the tensor before performing the operation.");
}

}  // namespace

void check_writable(const TensorImpl& t) {
  if (may_overlap_itself(t.sizes, t.strides)) fail_writable();
}

bool overlaps(const Operator& op, const TensorImpl& target, const Tensor& read) {
  if (!read.defined()) return false;
  const TensorImpl& other = *impl_of(read);
  return meet(other, target) && (op.places() || !same_elements(other, target));
}

void check_operands(const Operator& op, CallArgs args, size_t first, const Tensor& written) {
  const TensorImpl& target = *impl_of(written);
  auto forbidden = [&](const TensorImpl& read) {
    return is_dense(read.sizes, read.strides) && is_dense(target.sizes, target.strides);
  };
  bool any = false;
  each_tensor(CallArgs(args.data() + first, args.size() - first),
              [&](const Tensor& t) { any = any || (overlaps(op, target, t) && forbidden(*impl_of(t))); });
  if (!any) return;
  if (!op.places()) {
    Reads reads(op.row(), args);
    if (!reads.by_element() || reads.fills()) return;
  }
  fail(
      "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory "
      "location. Please clone() the tensor before performing the operation.");
}

void fill_shared(Operator& op, CallArgs args, const Tensor& self) {
  if (!Reads(op.row(), args).fills()) fail_writable();
  Tensor value = call_one(op, args);
  BRASA_CHECK(value.sizes() == self.sizes(), "output with shape ", impl_of(self)->sizes,
              " doesn't match the broadcast shape ", impl_of(value)->sizes);
  check_in_place(value.scalar_type(), self.scalar_type());
  value = value.to(self.scalar_type());
  int64_t extent = extent_of(impl_of(self)->sizes, impl_of(self)->strides);
  TensorOptions at = TensorOptions(kInt64).device(self.device());
  Tensor memory = self.as_strided({extent}, {1}, self.storage_offset());
  Tensor place = arange(extent, at).as_strided(self.sizes(), self.strides(), 0).reshape({-1});
  Tensor element = arange(self.numel(), at).view(self.sizes());
  Tensor changed = where(value.ne(self), element, full({}, -1, at)).reshape({-1});
  Tensor last = full({extent}, -1, at).scatter_reduce(0, place, changed, "amax");
  memory.copy_(where(last.ge(0), value.reshape({-1}).index_select(0, last.clamp_min(0)), memory));
}

}  // namespace brasa::eager
