#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include <brasa/autograd.h>

#include "tensor/autograd/saved.h"
#include "tensor/dispatch.h"

namespace brasa {
class Recorder;
}

namespace brasa::eager {
struct ViewLink;
struct ViewPlan;
}  // namespace brasa::eager

// How dispatch puts calls into the autograd graph.
namespace brasa::autograd {

/// Whether a gradient flows to it.
bool takes_part(const Tensor& t);
/// Of which of n results there is a gradient.
std::vector<bool> given_of(const variable_list& grads, size_t n);

/// What a call runs: where its results get gradients, the form that is made for that.
const eager::Computation& form_of(const eager::RowComputation& row, std::span<const eager::InputTensor> inputs);
/// After a call that ran: gives the results a node if an input requires a gradient.
void attach(const eager::Computation& computation, const std::string& name, std::span<const eager::InputTensor> inputs,
            eager::Results& results);
/// After a view was made (its ViewInfo is set): it gets a node for each of the links that lead from `from` to it.
void attach_view(const Tensor& view, const Tensor& from, const std::vector<const eager::ViewLink*>& links);
/// After a call gave several views of one tensor: they get one node.
void attach_views(const eager::Results& views, const Tensor& from, const ops::Row& row,
                  const std::shared_ptr<const eager::ArgStore>& args,
                  const std::vector<std::shared_ptr<const eager::ViewPlan>>& plans);
/// After as_strided was taken of the memory behind `self`, which is not contiguous.
void attach_memory_view(const Tensor& view, const Tensor& self);
/// When a recording ends whose nodes stay: `result` gives those of a recorded call that its derivative reads, where there are any.
void keep_results(Node& node, const std::function<Tensor(uint32_t)>& result);
/// After a call that was recorded.
void attach_recorded(eager::Operator& op, eager::CallArgs args, Recorder& recorder, eager::Results& results);

/// brasa::Error where autograd forbids writing into `self`.
void check_in_place(const Tensor& self, eager::CallArgs args);

/// brasa::Error where a call that writes into an argument `out` would lose a gradient.
void check_out(const eager::Operator& op, eager::CallArgs args, ArrayRef<Tensor*> outs);

/// After a hook was put on a node: where it is inside of a compiled graph, that gives way to its operators' nodes (see Inside), which keep it.
void watch(const Node& node);

/// The node of a call that writes `value` into a tensor, made before the write.
struct Pending {
  std::shared_ptr<Node> node;
  uint32_t call = 0;  // the recorder's number for it
};
Pending prepare_recorded(eager::Operator& op, eager::CallArgs args, const Tensor& value, Recorder& recorder);
/// Makes `node` what `self` comes from; where self is a view, its base comes from a copy into the view.
void rebase(const Tensor& self, Pending pending, size_t self_edge = 0);

/// An in-place call that runs: keeps the old value if backward reads it, then rebases.
class InPlace {
 public:
  InPlace(const Tensor& self, eager::Operator& op) : self_(self), op_(op) {}
  void before(const eager::Computation& computation, std::span<const eager::InputTensor> inputs);
  void after(std::span<const eager::InputTensor> inputs);

 private:
  const Tensor& self_;
  eager::Operator& op_;
  const eager::Computation* computation_ = nullptr;
  std::vector<bool> needs_, reads_;
  std::vector<Edge> edges_;
  std::vector<Tensor> originals_;  // by input: what backward reads and the call writes, as it was
};

}  // namespace brasa::autograd
