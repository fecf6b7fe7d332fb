#include <algorithm>

#include <brasa/func.h>

#include "import/frame.h"
#include "support/error.h"
#include "support/lazy.h"

// torch.func.vmap as export leaves it in a graph: the nodes between two that begin and end many calls are what one call does.
namespace brasa::import {
namespace {

constexpr std::string_view kPrefix = "torch._functorch.predispatch.";
bool is(const Node& n, std::string_view name) {
  return std::string_view(n.target).starts_with(kPrefix) && std::string_view(n.target).substr(kPrefix.size()) == name;
}
int64_t integer(Frame& f, const Node& n, size_t i) { return f.number(f.argument(n, i)).toLong(); }

// From the node behind a beginning to its end.
std::pair<size_t, size_t> body_of(const std::vector<Node>& nodes, const Node& begin) {
  auto first = static_cast<size_t>(&begin - nodes.data()) + 1, end = first;
  for (int inner = 0; end < nodes.size(); ++end) {
    if (is(nodes[end], "_vmap_increment_nesting")) ++inner;
    if (is(nodes[end], "_vmap_decrement_nesting") && inner-- == 0) break;
  }
  BRASA_CHECK(end < nodes.size(), "the calls that begin here do not end");
  return {first, end};
}

// (number of calls, randomness). Inside: (tensor, dimension, level) gives what one call sees of a tensor, and
// (tensor, level, number of calls, dimension) the results of all.
void many_calls(Frame& f, const Node& begin) {
  const std::vector<Node>& nodes = f.nodes();
  auto [first, end] = body_of(nodes, begin);
  std::vector<const Node*> takes, gives;
  for (size_t i = first, inner = 0; i < end; ++i) {
    if (is(nodes[i], "_vmap_increment_nesting")) ++inner;
    if (is(nodes[i], "_vmap_decrement_nesting")) --inner;
    if (inner == 0 && is(nodes[i], "_add_batch_dim")) takes.push_back(&nodes[i]);
    if (inner == 0 && is(nodes[i], "_remove_batch_dim")) gives.push_back(&nodes[i]);
  }
  std::vector<Tensor> inputs;
  std::vector<std::optional<int64_t>> dims;
  for (const Node* n : takes) {
    inputs.push_back(f.tensor(f.argument(*n, 0)));
    dims.emplace_back(integer(f, *n, 1));
  }
  auto one_call = [&, first = first, end = end](const std::vector<Tensor>& in) {
    std::vector<Tensor> results;
    f.run_nodes(first, end, [&](const Node& n) {
      if (auto it = std::find(takes.begin(), takes.end(), &n); it != takes.end())
        f.set(n, 0, in[static_cast<size_t>(it - takes.begin())]);
      else if (std::find(gives.begin(), gives.end(), &n) != gives.end())
        results.push_back(f.tensor(f.argument(n, 0)));
      else
        return false;
      return true;
    });
    return results;
  };
  const auto* randomness = begin.arguments.size() > 1 ? std::get_if<std::string>(&begin.arguments[1].value) : nullptr;
  std::vector<Tensor> all = func::detail::vmap(one_call, inputs, dims, 0, randomness ? *randomness : "error");
  for (size_t k = 0; k < gives.size(); ++k) f.set(*gives[k], 0, all[k].movedim(0, integer(f, *gives[k], 3)));
  f.go_on_behind(end);
}

void outside_of_calls(Frame&, const Node&) { fail("it stands outside of the calls that it belongs to"); }
void nothing(Frame&, const Node&) {}

}  // namespace

Handler many_calls_handler(const std::string& target) {
  static constinit Lazy<Handlers> kTable([] {
    return Handlers{
        {"_vmap_increment_nesting", many_calls}, {"_vmap_decrement_nesting", outside_of_calls},
        {"_add_batch_dim", outside_of_calls},    {"_remove_batch_dim", outside_of_calls},
        {"lazy_load_decompositions", nothing},
    };
  });
  return find(*kTable, kPrefix, target);
}

}  // namespace brasa::import
