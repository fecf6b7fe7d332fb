#include "compiler/run/plan.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <queue>
#include <unordered_map>

#include "compiler/fusion/indexing.h"
#include "compiler/fusion/places.h"
#include "support/error.h"

namespace brasa::compiler {

using ir::Expr;
using ir::Value;

void append_to(std::string& out, const Place& p) {
  if (p.kind == Place::Arena)
    out += str("arena + ", p.offset);
  else
    out += str(p.kind == Place::Input ? "input " : "output ", p.index);
}

void append_to(std::string& out, const Plan& p) {
  auto checks = [&](size_t after) {
    for (const Plan::Check& c : p.checks)
      if (c.after == after) out += str("check ", c.place, ": ", c.message, "\n");
  };
  checks(static_cast<size_t>(-1));
  for (size_t s = 0; s < p.steps.size(); ++s) {
    const Group& g = p.steps[s];
    out += str("step ", s, ": ", name(g.kind), " ", g.domain);
    for (size_t i = 0; i < p.places[s].size(); ++i)
      out += str(i == 0 && !g.inputs.empty() ? " reads " : i == g.inputs.size() ? " writes " : ", ", p.places[s][i]);
    out += "\n";
    checks(s);
  }
  out += str("arena of ", p.arena_bytes, " bytes\n");
}

namespace {

constexpr int64_t kAlignment = 64;

class Planner {
 public:
  Planner(const ir::Graph& graph, FusedGraph fused) : graph_(graph), groups_(std::move(fused.groups)) {}

  Plan run() {
    for (size_t g = 0; g < groups_.size(); ++g) {
      for (Value v : groups_[g].inputs) readers_[v].push_back(g);
      for (Value v : groups_[g].outputs) producer_[v] = g;
    }
    assign_outputs();
    order();
    allocate();
    return std::move(out_);
  }

 private:
  struct Copy {
    Value value;
    Place place;
    std::vector<Expr> strides;
  };

  // Each result is computed in its own memory where that is possible; otherwise it is copied there at the end.
  void assign_outputs() {
    after_.resize(groups_.size());
    std::vector<Copy> wanted;
    int fresh = 0;
    for (const ir::Output& o : graph_.outputs()) {
      if (!o.check.empty()) continue;
      if (o.into < 0) {
        wanted.push_back({o.value, {Place::Output, fresh++, 0}, {}});
        continue;
      }
      const ir::Input& in = graph_.inputs()[o.into];
      bool contiguous = in.strides == ir::contiguous_strides(type_of(o.value).shape);
      if (!(o.value == in.value))
        wanted.push_back({o.value, {Place::Input, o.into, 0}, contiguous ? std::vector<Expr>{} : in.strides});
    }
    for (const ir::Output& o : graph_.outputs())
      if (auto it = producer_.find(o.value); !o.check.empty() && it != producer_.end()) checks_.push_back(it->second);
    // What others read, copies too, has to be contiguous.
    auto count = [&](Value v) {
      return std::count_if(wanted.begin(), wanted.end(), [&](const Copy& c) { return c.value == v; });
    };
    // Copies of inputs come first: what overwrites the input has to know of them.
    std::vector<size_t> into_inputs;
    auto copy = [&](const Copy& c) {
      size_t g = add_copy(c.value, c.strides);
      copy_place_[g] = c.place;
      if (c.place.kind == Place::Input) into_inputs.push_back(g);
    };
    for (const Copy& c : wanted)
      if (ir::is_input(c.value)) copy(c);
    for (const Copy& c : wanted) {
      if (ir::is_input(c.value)) continue;
      bool fits = c.strides.empty() || count(c.value) == 1;
      if (!fits || !direct(c.value, c.place, c.strides)) copy(c);
    }
    for (size_t g : into_inputs) {
      for (size_t r : readers_[graph_.inputs()[copy_place_[g].index].value])
        if (r != g) after_[g].push_back(r);
      after_[g].insert(after_[g].end(), checks_.begin(), checks_.end());
    }
  }

  bool direct(Value v, const Place& place, const std::vector<Expr>& strides) {
    if (ir::is_input(v) || place_.count(v)) return false;
    auto it = producer_.find(v);
    BRASA_ASSERT(it != producer_.end(), "nothing computes an output");
    Group& g = groups_[it->second];
    if (!strides.empty() && (!readers_[v].empty() || g.kind == GroupKind::Library)) return false;
    if (place.kind == Place::Input) {
      Value old = graph_.inputs()[place.index].value;
      if (graph_.inputs()[place.index].strides.size() && strides.empty() && !readers_[v].empty()) return false;
      // All others read the old value first, and where a check fails nothing has been overwritten.
      std::vector<size_t> before = readers_[old];
      bool own = std::erase(before, it->second) > 0;
      before.insert(before.end(), checks_.begin(), checks_.end());
      std::vector<bool> follow = following(it->second);
      for (size_t b : before)
        if (b == it->second || follow[b]) return false;
      if (own && !(same_elements(g, old) && order_stores(g, v, place))) return false;
      after_[it->second].insert(after_[it->second].end(), before.begin(), before.end());
    }
    auto index = static_cast<size_t>(std::find(g.outputs.begin(), g.outputs.end(), v) - g.outputs.begin());
    g.output_strides[index] = strides;
    place_[v] = place;
    return true;
  }

  // Puts the outputs of a group, of which `v` and those placed before overwrite inputs, in an order in which every input is
  // loaded before it is overwritten: by the output itself, or an earlier one. False if there is none.
  bool order_stores(Group& g, Value v, const Place& place) const {
    size_t n = g.outputs.size();
    std::vector<Value> overwritten(n);  // the group's input that output k overwrites
    for (size_t k = 0; k < n; ++k) {
      auto it = place_.find(g.outputs[k]);
      const Place* p = g.outputs[k] == v ? &place : it != place_.end() ? &it->second : nullptr;
      if (!p || p->kind != Place::Input) continue;
      overwritten[k] = inside(g, graph_.inputs()[p->index].value);
    }
    std::vector<std::vector<bool>> reads(n, std::vector<bool>(g.graph->nodes().size()));  // by output and node
    for (size_t k = 0; k < n; ++k) {
      reads[k][g.graph->outputs()[k].value.node->id] = true;
      ir::add_operands(*g.graph, reads[k]);
    }
    std::vector<size_t> order, left(n);
    std::iota(left.begin(), left.end(), size_t{0});
    while (!left.empty()) {
      auto fits = [&](size_t k) {
        if (!overwritten[k]) return true;
        size_t id = overwritten[k].node->id;
        auto loads = [&](size_t o) { return reads[o][id]; };
        return loads(k) || std::any_of(order.begin(), order.end(), loads) ||
               std::none_of(left.begin(), left.end(), loads);
      };
      auto next = std::find_if(left.begin(), left.end(), fits);
      if (next == left.end()) return false;
      order.push_back(*next);
      left.erase(next);
    }
    auto reordered = [&](auto& list) {
      auto from = list;
      for (size_t k = 0; k < n; ++k) list[k] = from[order[k]];
    };
    reordered(g.outputs);
    reordered(g.output_strides);
    reordered(g.graph->outputs());
    return true;
  }

  // The element at an index is made of those at the same index.
  static bool keeps_index(const ir::Node* n) {
    Prim p = prim_of(n);
    return p == Prim::Pointwise || (p == Prim::Reshape && n->types[0].shape == type_of(n->arg<Value>(0)).shape);
  }

  // The group's own input for a value of the whole graph.
  static Value inside(const Group& g, Value whole) {
    auto it = std::find(g.inputs.begin(), g.inputs.end(), whole);
    return it == g.inputs.end() ? Value{} : g.graph->inputs()[it - g.inputs.begin()].value;
  }

  // A scatter that reads `old` as what its updates go into, and nowhere else.
  static bool only_updates(const Group& g, Value old) {
    const ir::Node* scatter = g.graph->outputs()[0].value.node;
    Value in = inside(g, old);
    if (g.outputs.size() != 1 || scatter->arg<Value>(0) != in) return false;
    int reads = 0;
    for (const ir::Node* n : g.graph->nodes()) n->for_each_input([&](Value v) { reads += v == in; });
    return reads == 1;
  }

  // Every read of `old` in the group is of the element that the same iteration overwrites.
  static bool same_elements(const Group& g, Value old) {
    if (g.kind == GroupKind::Scatter) return only_updates(g, old);
    if (g.domain.has_reduced() || (g.kind != GroupKind::Loops && g.kind != GroupKind::Contraction)) return false;
    Value in = inside(g, old);
    if (type_of(in).shape != g.domain.dims) return false;
    // From there to the outputs only point-wise work on the whole domain.
    std::vector<bool> tainted(g.graph->nodes().size());
    tainted[in.node->id] = true;
    for (const ir::Node* n : g.graph->nodes()) {
      bool reads = false;
      n->for_each_input([&](Value v) { reads |= tainted[v.node->id]; });
      if (!reads) continue;
      if (!keeps_index(n)) return false;
      tainted[n->id] = true;
    }
    return true;
  }

  // By group: those that wait for it alone.
  std::vector<std::vector<size_t>> next() const {
    std::vector<std::vector<size_t>> out(groups_.size());
    for (size_t g = 0; g < groups_.size(); ++g) {
      for (Value v : groups_[g].inputs)
        if (auto it = producer_.find(v); it != producer_.end()) out[it->second].push_back(g);
      for (size_t before : after_[g]) out[before].push_back(g);
    }
    return out;
  }

  // The groups that must run after this one.
  std::vector<bool> following(size_t from) const {
    std::vector<std::vector<size_t>> next = this->next();
    std::vector<bool> seen(groups_.size());
    std::vector<size_t> stack{from};
    while (!stack.empty()) {
      size_t g = stack.back();
      stack.pop_back();
      for (size_t n : next[g])
        if (!seen[n]) {
          seen[n] = true;
          stack.push_back(n);
        }
    }
    return seen;
  }

  size_t add_copy(Value v, const std::vector<Expr>& strides) {
    Group g;
    g.graph->add_output(g.add_input(v, graph_));
    g.domain = domain_of(type_of(v).shape);
    g.outputs = {v};
    g.output_strides = {strides};
    groups_.push_back(std::move(g));
    after_.emplace_back();
    readers_[v].push_back(groups_.size() - 1);
    return groups_.size() - 1;
  }

  // The fused order, but what only writes results into inputs comes last: such groups are many and small, and run
  // together.
  void order() {
    size_t n = groups_.size();
    std::vector<std::vector<size_t>> next = this->next();
    std::vector<int> waiting(n);
    for (const auto& list : next)
      for (size_t g : list) ++waiting[g];
    auto late = [&](size_t g) {
      if (copy_place_.count(g)) return true;
      return std::all_of(groups_[g].outputs.begin(), groups_[g].outputs.end(), [&](Value v) {
        auto it = place_.find(v);
        return it != place_.end() && it->second.kind == Place::Input && readers_[v].empty();
      });
    };
    using Item = std::pair<bool, size_t>;
    std::priority_queue<Item, std::vector<Item>, std::greater<>> ready;
    for (size_t g = 0; g < n; ++g)
      if (!waiting[g]) ready.push({late(g), g});
    while (!ready.empty()) {
      size_t g = ready.top().second;
      ready.pop();
      order_.push_back(g);
      for (size_t b : next[g])
        if (--waiting[b] == 0) ready.push({late(b), b});
    }
    BRASA_ASSERT(order_.size() == n, "the groups wait for each other");
  }

  static Expr aligned(Expr bytes) { return ceildiv(bytes, kAlignment) * Expr(kAlignment); }

  // Memory of values that nobody outside sees. Of constant size they share one block, where their lives do not overlap; of
  // symbolic size they take over the room of a value of the same size.
  void allocate() {
    std::unordered_map<Value, size_t> last;
    for (size_t s = 0; s < order_.size(); ++s)
      for (Value v : groups_[order_[s]].inputs) last[v] = s;
    for (const ir::Output& o : graph_.outputs())
      if (!o.check.empty()) last[o.value] = order_.size();
    std::map<int64_t, int64_t> used;  // offset -> end, of living values of constant size
    int64_t block = 0;
    struct Slot {
      Expr bytes, offset;
      bool free;
    };
    std::vector<Slot> slots;
    std::unordered_map<Value, size_t> slot_of;
    std::unordered_map<Value, int64_t> offset_of;
    for (size_t s = 0; s < order_.size(); ++s) {
      const Group& g = groups_[order_[s]];
      for (Value v : g.outputs) {
        if (place_.count(v) || copy_place_.count(order_[s])) continue;
        Expr bytes = aligned(type_of(v).numel() * Expr(size_of(type_of(v).dtype)));
        if (bytes.is_constant()) {
          int64_t at = 0, size = std::max<int64_t>(bytes.constant(), kAlignment);
          for (auto [begin, end] : used) {
            if (begin - at >= size) break;
            at = std::max(at, end);
          }
          used[at] = at + size;
          block = std::max(block, at + size);
          offset_of[v] = at;
        } else {
          auto it = std::find_if(slots.begin(), slots.end(), [&](const Slot& c) { return c.free && c.bytes == bytes; });
          if (it == slots.end()) it = slots.insert(slots.end(), Slot{bytes, 0, false});
          it->free = false;
          slot_of[v] = static_cast<size_t>(it - slots.begin());
        }
      }
      auto release = [&](Value v) {
        if (auto it = offset_of.find(v); it != offset_of.end()) used.erase(it->second);
        if (auto it = slot_of.find(v); it != slot_of.end()) slots[it->second].free = true;
      };
      for (Value v : g.inputs)
        if (last[v] == s) release(v);
      for (Value v : g.outputs)
        if (!last.count(v)) release(v);
    }
    Expr total(block);
    for (Slot& slot : slots) {
      slot.offset = total;
      total = total + slot.bytes;
    }
    for (auto [v, at] : offset_of) place_[v] = {Place::Arena, 0, at};
    for (auto [v, slot] : slot_of) place_[v] = {Place::Arena, 0, slots[slot].offset};
    out_.arena_bytes = total;
    write_steps();
  }

  Place place_of(Value v) const {
    if (int i = graph_.input_index(v); i >= 0) return {Place::Input, i, 0};
    return place_.at(v);
  }

  void write_steps() {
    for (size_t g : order_) {
      std::vector<Place> places;
      for (Value v : groups_[g].inputs) places.push_back(place_of(v));
      for (Value v : groups_[g].outputs) {
        auto copy = copy_place_.find(g);
        places.push_back(copy != copy_place_.end() ? copy->second : place_of(v));
      }
      for (const ir::Output& o : graph_.outputs())
        if (!o.check.empty() && producer_.count(o.value) && producer_.at(o.value) == g)
          out_.checks.push_back({out_.steps.size(), place_of(o.value), o.check});
      out_.places.push_back(std::move(places));
      out_.steps.push_back(std::move(groups_[g]));
    }
    for (const ir::Output& o : graph_.outputs())
      if (!o.check.empty() && ir::is_input(o.value))
        out_.checks.push_back({static_cast<size_t>(-1), place_of(o.value), o.check});
  }

  const ir::Graph& graph_;
  std::vector<Group> groups_;
  std::unordered_map<Value, size_t> producer_;
  std::unordered_map<Value, std::vector<size_t>> readers_;
  std::unordered_map<Value, Place> place_;
  std::vector<size_t> checks_;              // groups whose results are checked
  std::vector<std::vector<size_t>> after_;  // by group: groups that must run before it
  std::unordered_map<size_t, Place> copy_place_;
  std::vector<size_t> order_;
  Plan out_;
};

}  // namespace

Plan plan(const ir::Graph& graph, FusedGraph fused) { return Planner(graph, std::move(fused)).run(); }

}  // namespace brasa::compiler
