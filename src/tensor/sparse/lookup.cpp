#include <brasa/factories.h>
#include <brasa/ops_generated.h>

#include "support/error.h"
#include "tensor/autograd/meta.h"
#include "tensor/recorder.h"
#include "tensor/sparse/table.h"

// embedding and embedding_bag whose weight gets a sparse gradient: a row for each index that was looked up.
namespace brasa::eager::sparse {
namespace {

using autograd::Edge;
using autograd::Node;

// What the output has to do with the weight's rows, and the weights of the samples, if they want a gradient.
class LookupNode final : public Node {
 public:
  LookupNode(std::string name, const Tensor& weight, Tensor indices, int64_t padding)
      : name_(std::move(name)), sizes_(weight.sizes()), indices_(std::move(indices)), padding_(padding) {
    next_edges_.push_back(autograd::gradient_edge(weight));
    // A leaf is outside of any recording, and so is what leads to it.
    if (next_edges_[0].function->next_edges().empty()) sequence_nr_ = 0;
  }
  std::string name() const override { return name_; }

  // Of bags: the bag of each index, what each bag's gradient is multiplied with (a mean), and each sample's (weights).
  Tensor bag, bag_scale, sample_weight;
  // For the gradient of the weights of the samples.
  Tensor weight;
  void add_sample_edge() {
    next_edges_.push_back(autograd::gradient_edge(sample_weight));
    sequence_nr_ = next_sequence_;
  }
  void set_result(const Tensor& out) { internals_->results.emplace_back(out); }

 protected:
  autograd::variable_list apply(autograd::variable_list&& gradients) override {
    autograd::variable_list out(next_edges_.size());
    Tensor g = gradients[0];
    if (!g.defined()) return out;
    BRASA_CHECK(indices_.defined(), autograd::second_time(name_));
    Tensor flat = indices_.reshape({-1}).to(kLong), rows;
    if (bag.defined()) {
      if (bag_scale.defined()) g = g * bag_scale;
      rows = g.index_select(0, bag);
      if (out.size() > 1) {
        Tensor s = (rows * weight.index_select(0, flat)).sum(IntArrayRef(1));
        out[1] = padding_ >= 0 ? s * flat.ne(padding_) : s;
      }
      if (sample_weight.defined()) rows = rows * sample_weight.detach().unsqueeze(1);
    } else {
      rows = g.reshape({-1, sizes_[1]});
    }
    if (padding_ >= 0 && Recorder::current()) {
      // How many are left would end the recording.
      rows = rows * flat.ne(padding_).unsqueeze(1);
    } else if (padding_ >= 0) {
      Tensor kept = positions(flat.ne(padding_));
      flat = flat.index_select(0, kept);
      rows = rows.index_select(0, kept);
    }
    out[0] = make_coo(sizes_, flat.unsqueeze(0), rows, flat.size(0) < 2);
    return out;
  }
  void release_variables() override { indices_.reset(); }

 private:
  std::string name_;
  std::vector<int64_t> sizes_;
  Tensor indices_;
  int64_t padding_;
  uint64_t next_sequence_ = sequence_nr_;
};

bool wants_gradient(const Call& c, size_t i) { return c.has_tensor(i) && c.args()[i].tensor->requires_grad(); }

void embedding(Call& c, Results& results) {
  const Tensor &weight = c.tensor(0), &indices = c.tensor(1);
  BRASA_CHECK(!c.flag(3), "embedding: scale_grad_by_freq is not supported with sparse gradients");
  {
    NoGradGuard guard;
    results.resize(1);
    results[0] = call_one(c.op(), c.args());
  }
  auto node = autograd::make_node<LookupNode>(c.op().backward_name(), weight, indices, c.integer(2));
  node->set_result(results[0]);
  autograd::set_history(results[0], node, 0);
}

void embedding_bag(Call& c, Results& results) {
  const Tensor &weight = c.tensor(0), &indices = c.tensor(1);
  int64_t mode = c.integer(4);
  BRASA_CHECK(!c.flag(3), "embedding_bag: scale_grad_by_freq is not supported with sparse gradients");
  BRASA_CHECK(mode != 2, "embedding_bag: mode='max' does not support sparse weights");
  int64_t padding = c.args().size() > 8 && c.has(8) ? c.integer(8) : -1;
  // Where it may be absent, a negative one counts from the end.
  if (padding < 0 && c.has(8) && c.op().row().schema.params[8].optional) padding += weight.size(0);
  {
    NoGradGuard guard;
    eager::call(c.op(), c.args(), results);
  }
  auto node = autograd::make_node<LookupNode>(c.op().backward_name(), weight, indices, padding);
  {
    NoGradGuard guard;
    // Which bag an index is in: that of the last offset at or before it.
    Tensor offsets = c.tensor(2).to(kLong);
    if (c.flag(7)) offsets = offsets.slice(0, 0, -1);
    int64_t entries = indices.reshape({-1}).size(0);
    node->bag = searchsorted(offsets, counting(entries), false, true) - 1;
    if (mode == 1) {
      Tensor flat = indices.reshape({-1});
      Tensor counted = padding >= 0 ? flat.ne(padding).to(kLong) : ones({entries}, kLong);
      Tensor sizes = add_up(counted, node->bag, results[0].size(0)).clamp_min(1);
      node->bag_scale = sizes.to(results[0].scalar_type()).reciprocal().unsqueeze(1);
    }
  }
  if (c.has(6)) {
    node->sample_weight = c.tensor(6);
    if (wants_gradient(c, 6)) {
      node->weight = weight.detach();
      node->add_sample_edge();
    }
  }
  node->set_result(results[0]);
  autograd::set_history(results[0], node, 0);
}

}  // namespace

bool gradient_asked_for(const Operator& op, CallArgs args) {
  auto i = static_cast<size_t>(op.sparse_gradient());
  if (i >= args.size() || args[i].kind != CallArg::Kind::Bool || !args[i].integer) return false;
  return GradMode::is_enabled() && args[0].kind == CallArg::Kind::Tensor && args[0].tensor->requires_grad();
}

void call_with_sparse_gradient(Operator& op, CallArgs args, Results& results) {
  Call c(op, args);
  if (op.row().sparse == ops::Sparse::Embedding)
    embedding(c, results);
  else
    embedding_bag(c, results);
}

}  // namespace brasa::eager::sparse
