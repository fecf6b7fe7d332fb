#include "compiler/run/plan.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <queue>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "compiler/fusion/indexing.h"
#include "compiler/fusion/places.h"
#include "compiler/run/block.h"
#include "compiler/run/equal_products.h"
#include "compiler/run/in_place.h"
#include "ir/text.h"
#include "ops/algebra.h"
#include "support/error.h"

namespace brasa::compiler {

namespace {

constexpr int64_t kAlignment = 256;
// So many groups early is what only reads inputs computed, to stand beside its like.
constexpr size_t kEarly = 64;
// What a group may keep in memory that waits for its like.
constexpr int64_t kKept = 4 << 20;
// A search for what must run after a group ends after this many others, so that planning takes time in proportion to the graph.
constexpr int kFarthest = 4000;

class Planner {
 public:
  Planner(const ir::Graph& graph, FusedGraph fused, Together together, LastingInputs lasting, Shortened shortened)
      : graph_(graph),
        groups_(std::move(fused.groups)),
        together_(together != Together::None),
        joins_products_(together == Together::Products),
        lasting_(std::move(lasting.are)),
        shortened_(std::move(shortened)),
        prepared_room_(lasting.most_bytes),
        carried_(std::move(lasting.carried)) {}

  Plan run() {
    add_carried();
    for (size_t g = 0; g < groups_.size(); ++g) {
      for (Value v : groups_[g].inputs) readers_[v].push_back(g);
      for (Value v : groups_[g].outputs) producer_[v] = g;
    }
    assign_outputs();
    find_prepared();
    sort_ = together_ ? equal_kernels(groups_) : std::vector<size_t>(groups_.size());
    if (joins_products_) join_products();
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
    for (size_t g = 0; g < groups_.size(); ++g) add_step(g);
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
      if (auto it = producer_.find(o.value); !o.check.empty() && it != producer_.end())
        next_[step(it->second)].push_back(kAllChecks);
    // What others read, copies too, has to be contiguous.
    std::unordered_map<Value, int> count;
    for (const Copy& c : wanted) ++count[c.value];
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
      bool fits = c.strides.empty() || count[c.value] == 1;
      if (!fits || !direct(c.value, c.place, c.strides)) copy(c);
    }
    for (size_t g : into_inputs) {
      for (size_t r : readers_[graph_.inputs()[copy_place_[g].index].value])
        if (r != g) next_[step(r)].push_back(step(g));
      next_[kAllChecks].push_back(step(g));
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
      std::vector<size_t> before{kAllChecks};
      bool own = false;
      for (size_t r : readers_[old])
        if (r == it->second)
          own = true;
        else
          before.push_back(step(r));
      if (may_follow(before, step(it->second))) return false;
      if (own && !(same_elements(g, old) && order_stores(g, v, place))) return false;
      for (size_t b : before) next_[b].push_back(step(it->second));
    }
    auto index = static_cast<size_t>(std::find(g.outputs.begin(), g.outputs.end(), v) - g.outputs.begin());
    g.output_strides[index] = strides;
    place_[v] = place;
    return true;
  }

  // Of a group of which `v` and those placed before overwrite inputs.
  bool order_stores(Group& g, Value v, const Place& place) const {
    size_t n = g.outputs.size();
    std::vector<Value> overwritten(n);  // the group's input that output k overwrites
    for (size_t k = 0; k < n; ++k) {
      auto it = place_.find(g.outputs[k]);
      const Place* p = g.outputs[k] == v ? &place : it != place_.end() ? &it->second : nullptr;
      if (!p || p->kind != Place::Input) continue;
      overwritten[k] = input_for(g, graph_.inputs()[p->index].value);
    }
    return brasa::compiler::order_stores(g, overwritten);
  }

  // What runs: first a step that only waits for all checks, then one a group.
  static constexpr size_t kAllChecks = 0;
  static size_t step(size_t group) { return group + 1; }

  void add_step(size_t group) {
    next_.resize(step(group) + 1);
    seen_.resize(step(group) + 1);
    for (Value v : groups_[group].inputs)
      if (auto it = producer_.find(v); it != producer_.end()) next_[step(it->second)].push_back(step(group));
  }

  // Whether one of these steps must run after this one, or was not found because so many do.
  bool may_follow(const std::vector<size_t>& steps, size_t from) {
    ++search_;
    std::vector<size_t> stack{from};
    for (int visited = 0; !stack.empty(); ++visited) {
      if (visited == kFarthest) return true;
      size_t s = stack.back();
      stack.pop_back();
      for (size_t n : next_[s])
        if (seen_[n] != search_) {
          seen_[n] = search_;
          stack.push_back(n);
        }
    }
    return std::any_of(steps.begin(), steps.end(), [&](size_t s) { return seen_[s] == search_; });
  }

  size_t add_copy(Value v, const std::vector<Expr>& strides) {
    Group g;
    g.graph->add_output(g.add_input(v, graph_));
    g.domain = domain_of(type_of(v).shape);
    g.outputs = {v};
    g.output_strides = {strides};
    groups_.push_back(std::move(g));
    add_step(groups_.size() - 1);
    readers_[v].push_back(groups_.size() - 1);
    return groups_.size() - 1;
  }

  // What makes a carried copy where no run has left it.
  void add_carried() {
    std::vector<Group> first;
    for (const CarriedCopy& c : carried_) {
      Value of = graph_.inputs()[c.of].value, copy = graph_.inputs()[c.input].value;
      Group g;
      ir::Facts none;
      ops::Builder builder(*g.graph, none);
      g.graph->add_output(ops::prim::convert(g.add_input(of, graph_), type_of(copy).dtype));
      g.domain = domain_of(type_of(copy).shape);
      g.outputs = {copy};
      g.output_strides = {{}};
      first.push_back(std::move(g));
    }
    groups_.insert(groups_.begin(), std::make_move_iterator(first.begin()), std::make_move_iterator(first.end()));
  }
  bool is_carried(int input) const { return !carried_.empty() && input >= static_cast<int>(carried_[0].input); }

  void find_prepared() {
    prepares_.assign(groups_.size(), false);
    for (const CarriedCopy& c : carried_) may_keep({graph_.inputs()[c.input].value});
    if (std::find(lasting_.begin(), lasting_.end(), true) != lasting_.end()) find_made_of_lasting();
    for (const CarriedCopy& c : carried_) prepares_[producer_.at(graph_.inputs()[c.input].value)] = true;
    out_.prepared = static_cast<size_t>(std::count(prepares_.begin(), prepares_.end(), true));
  }
  // Groups that make something of lasting inputs alone, or of nothing, and whose results are not the graph's.
  void find_made_of_lasting() {
    lasting_.resize(graph_.inputs().size());
    for (const ir::Output& o : graph_.outputs())
      if (auto it = producer_.find(o.value); it != producer_.end()) makes_result_.insert(it->second);
    for (size_t g = 0; g < groups_.size(); ++g) {
      auto lasts = [&](Value v) {
        int i = graph_.input_index(v);
        return i >= 0 ? lasting_[i] : prepares_[producer_.at(v)];
      };
      bool call = groups_[g].kind == GroupKind::Library && groups_[g].library->prepare;
      prepares_[g] = !call && !makes_result_.count(g) && !copy_place_.count(g) && has_sizes_of_inputs(groups_[g]) &&
                     std::all_of(groups_[g].inputs.begin(), groups_[g].inputs.end(), lasts);
    }
    // From the last on, so that it is known who reads what: of a chain the end alone is kept.
    for (size_t g = groups_.size(); g-- > 0;) prepares_[g] = prepares_[g] && may_keep(groups_[g].outputs);
  }
  // What has other sizes, as zeros for a batch, would be made anew with all else where these change.
  static bool has_sizes_of_inputs(const Group& g) {
    auto symbols = [](const std::vector<Value>& values) {
      std::vector<Expr> out;
      for (Value v : values)
        for (Expr e : type_of(v).shape) ir::collect_symbols(e, out);
      return out;
    };
    std::vector<Expr> given = symbols(g.inputs), needed = symbols(g.outputs);
    return std::all_of(needed.begin(), needed.end(),
                       [&](Expr e) { return std::find(given.begin(), given.end(), e) != given.end(); });
  }
  // Whether there is room among what is kept. Sizes that only a call knows are not counted.
  bool may_keep(const std::vector<Value>& values) {
    int64_t bytes = 0;
    for (Value v : values)
      if (Expr n = type_of(v).numel(); n.is_constant() && read_later(v))
        bytes += n.constant() * size_of(type_of(v).dtype);
    bool fits = bytes <= prepared_room_;
    if (fits) prepared_room_ -= bytes;
    return fits;
  }
  // Whether a run that finds what is prepared reads it.
  bool read_later(Value v) const {
    auto it = readers_.find(v);
    return it != readers_.end() &&
           std::any_of(it->second.begin(), it->second.end(), [&](size_t r) { return !prepares_[r]; });
  }

  // Whether it only writes results into inputs.
  bool late(size_t s) {
    if (s == kAllChecks) return false;
    size_t g = s - step(0);
    if (copy_place_.count(g)) return true;
    bool updates = false;
    for (Value v : groups_[g].outputs) {
      auto it = place_.find(v);
      if (it == place_.end() || !readers_[v].empty()) return false;
      bool update = it->second.kind == Place::Input;
      if (!update && !together_) return false;
      updates |= update;
    }
    return updates;
  }
  // Whether such groups read its results, and no others do.
  bool late_alone_read(size_t g) {
    bool read = false, by_late = true;
    for (Value v : groups_[g].outputs)
      for (size_t r : readers_[v]) {
        read = true;
        by_late &= late(step(r));
      }
    return read && by_late;
  }

  // Products that are the same wait for each other, and each of their tensors lies behind the one of the product before.
  void join_products() {
    auto whole = [](Value v) {
      Expr bytes = type_of(v).numel() * Expr(size_of(type_of(v).dtype));
      return bytes.is_constant() && bytes.constant() > 0 && bytes.constant() % kAlignment == 0;
    };
    auto free = [&](Value v) {
      auto it = producer_.find(v);
      if (ir::is_input(v) || it == producer_.end() || place_.count(v) || !whole(v)) return false;
      const Group& g = groups_[it->second];
      auto index = std::find(g.outputs.begin(), g.outputs.end(), v) - g.outputs.begin();
      return !prepares_[it->second] && !copy_place_.count(it->second) && g.output_strides[index].empty();
    };
    auto stands = [&](size_t g) {
      const Group& product = groups_[g];
      return free(product.outputs[0]) && late_alone_read(g) &&
             std::all_of(product.inputs.begin(), product.inputs.end(), free);
    };
    for (const std::vector<size_t>& set : equal_products(groups_, stands)) {
      for (size_t i = 0; i <= groups_[set[0]].inputs.size(); ++i) {
        std::vector<Value> tensors;
        for (size_t g : set)
          tensors.push_back(i < groups_[g].inputs.size() ? groups_[g].inputs[i] : groups_[g].outputs[0]);
        rows_.add(tensors);
      }
      for (size_t g : set) {
        joined_.insert(g);
        sort_[g] = set[0] + 1;
      }
    }
  }

  // What is prepared comes first; then the fused order, but what only writes results into inputs comes last: such groups are many and
  // small, and run together; those that write other results too, of a GPU. Where the same groups are to stand side by side, so does,
  // before it, what only it reads.
  void order() {
    std::vector<int> waiting(next_.size());
    for (const auto& list : next_)
      for (size_t s : list) ++waiting[s];
    auto waits = [&](size_t g) {
      bool small = std::all_of(groups_[g].inputs.begin(), groups_[g].inputs.end(), [&](Value v) {
        const ir::Type& t = type_of(v);
        return ir::is_input(v) || (t.numel().is_constant() && t.numel().constant() * size_of(t.dtype) <= kKept);
      });
      return joined_.count(g) || (small && late_alone_read(g));
    };
    auto of_inputs = [&](size_t g) {
      return std::all_of(groups_[g].inputs.begin(), groups_[g].inputs.end(), ir::is_input);
    };
    // What is made of inputs alone, as panels of weights are, waits for its first reader: before, it would take memory for nothing.
    auto place = [&](size_t g) {
      size_t none = step(groups_.size()), first = none;
      if (of_inputs(g))
        for (Value v : groups_[g].outputs)
          if (auto it = readers_.find(v); it != readers_.end())
            for (size_t r : it->second) first = std::min(first, step(r));
      return first < none ? first : step(g);
    };
    // How late it is, its place in the order, its sort.
    using Item = std::tuple<int, size_t, size_t, size_t>;
    auto item = [&](size_t s) -> Item {
      if (s == kAllChecks) return {0, s, 0, s};
      size_t g = s - step(0);
      if (prepares_[g]) return {-1, s, 0, s};
      if (late(s)) return {2, 0, sort_[g], s};
      if (!sort_[g]) return {0, place(g), 0, s};
      if (of_inputs(g)) return {0, place(g) / kEarly * kEarly, sort_[g], s};
      return waits(g) ? Item{1, 0, sort_[g], s} : Item{0, s, 0, s};
    };
    std::priority_queue<Item, std::vector<Item>, std::greater<>> ready;
    for (size_t s = 0; s < next_.size(); ++s)
      if (!waiting[s]) ready.push(item(s));
    while (!ready.empty()) {
      size_t s = std::get<3>(ready.top());
      ready.pop();
      if (s != kAllChecks) order_.push_back(s - step(0));
      for (size_t b : next_[s])
        if (--waiting[b] == 0) ready.push(item(b));
    }
    BRASA_ASSERT(order_.size() == groups_.size(), "the groups wait for each other");
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
    Block block;  // of values of constant size
    struct Slot {
      Expr bytes, offset;
    };
    std::vector<Slot> slots;
    std::unordered_map<Expr, std::set<size_t>> free_slots;  // by their bytes
    std::unordered_map<Value, size_t> slot_of;
    std::unordered_map<Value, size_t> range_of;  // of the block
    std::vector<Value> unused;
    std::unordered_set<Value> longer_rows, taken_over;
    for (size_t s = 0; s < order_.size(); ++s) {
      const Group& g = groups_[order_[s]];
      for (size_t i = 0; i < g.outputs.size(); ++i) {
        Value v = g.outputs[i];
        if (place_.count(v) || copy_place_.count(order_[s])) continue;
        if (rows_.take(v, block)) continue;
        const std::vector<Expr>& strides = g.output_strides[i];  // of longer rows
        Expr elements = strides.empty() ? type_of(v).numel() : type_of(v).shape[0] * strides[0];
        Expr bytes = aligned(elements * Expr(size_of(type_of(v).dtype)));
        if (prepares_[order_[s]] && read_later(v)) {
          place_[v] = {Place::Prepared, 0, out_.prepared_bytes};
          out_.prepared_bytes = shortened_(out_.prepared_bytes + bytes);
          continue;
        }
        if (Value old = strides.empty() ? overwritten(g, s, last) : Value{}; old && !longer_rows.count(old)) {
          if (auto it = range_of.find(old); it != range_of.end()) range_of[v] = it->second;
          if (auto it = slot_of.find(old); it != slot_of.end()) slot_of[v] = it->second;
          if (range_of.count(v) || slot_of.count(v)) {
            taken_over.insert(old);
            continue;
          }
        }
        if (!strides.empty()) longer_rows.insert(v);
        if (bytes.is_constant()) {
          range_of[v] = block.take(std::max<int64_t>(bytes.constant(), kAlignment));
        } else if (std::set<size_t>& free = free_slots[bytes]; !free.empty()) {
          slot_of[v] = free.extract(free.begin()).value();
        } else {
          slot_of[v] = slots.size();
          slots.push_back({bytes, 0});
        }
      }
      auto release = [&](Value v) {
        if (taken_over.count(v)) return;
        rows_.give_back(v, block);
        if (auto it = range_of.find(v); it != range_of.end()) block.give_back(it->second);
        if (auto it = slot_of.find(v); it != slot_of.end()) free_slots[slots[it->second].bytes].insert(it->second);
      };
      for (Value v : g.inputs)
        if (last[v] == s) unused.push_back(v);
      for (Value v : g.outputs)
        if (!last.count(v)) unused.push_back(v);
      // One of several that can run at once must not write what another one reads.
      bool more = s + 1 < order_.size() && sort_[order_[s]] && sort_[order_[s]] == sort_[order_[s + 1]];
      if (more) continue;
      for (Value v : unused) release(v);
      unused.clear();
    }
    block.place();
    Expr total(block.size());
    for (Slot& slot : slots) {
      slot.offset = total;
      total = shortened_(total + slot.bytes);
    }
    for (auto [v, range] : range_of) place_[v] = {Place::Arena, 0, block.offset(range)};
    rows_.each([&](Value v, int64_t offset) { place_[v] = {Place::Arena, 0, offset}; }, block);
    for (auto [v, slot] : slot_of) place_[v] = {Place::Arena, 0, slots[slot].offset};
    out_.arena_bytes = total;
    write_steps();
  }

  // A value in whose memory a group, the one in this place of the order, writes its result, because it is the last one that reads it and reads
  // the element there that it writes; absent where there is none.
  Value overwritten(const Group& g, size_t at, const std::unordered_map<Value, size_t>& last) const {
    if (together_ || g.kind != GroupKind::Loops || g.outputs.size() != 1 || sort_[order_[at]]) return {};
    const ir::Type& made = type_of(g.outputs[0]);
    for (Value old : g.inputs) {
      const ir::Type& t = type_of(old);
      bool fits = t.shape == made.shape && size_of(t.dtype) == size_of(made.dtype) && last.at(old) == at;
      if (fits && same_elements(g, old)) return old;
    }
    return {};
  }

  Place place_of(Value v) const {
    int i = graph_.input_index(v);
    return in_memory(i >= 0 ? Place{Place::Input, i, 0} : place_.at(v));
  }
  // A carried copy has no operand.
  Place in_memory(const Place& p) const {
    return p.kind == Place::Input && is_carried(p.index) ? place_.at(graph_.inputs()[p.index].value) : p;
  }

  void write_steps() {
    std::unordered_map<size_t, std::vector<const ir::Output*>> checks;  // by the group that computes what they look at
    for (const ir::Output& o : graph_.outputs())
      if (!o.check.empty() && !ir::is_input(o.value)) checks[producer_.at(o.value)].push_back(&o);
    for (size_t g : order_) {
      std::vector<Place> places;
      for (Value v : groups_[g].inputs) places.push_back(place_of(v));
      for (Value v : groups_[g].outputs) {
        auto copy = copy_place_.find(g);
        places.push_back(copy != copy_place_.end() ? in_memory(copy->second) : place_of(v));
      }
      for (const ir::Output* o : checks[g]) out_.checks.push_back({out_.steps.size(), place_of(o->value), o->check});
      out_.places.push_back(std::move(places));
      out_.steps.push_back(std::move(groups_[g]));
    }
    for (const ir::Output& o : graph_.outputs())
      if (!o.check.empty() && ir::is_input(o.value))
        out_.checks.push_back({static_cast<size_t>(-1), place_of(o.value), o.check});
  }

  const ir::Graph& graph_;
  std::vector<Group> groups_;
  bool together_, joins_products_;
  std::vector<bool> lasting_, prepares_;  // by input; by group
  Shortened shortened_;
  int64_t prepared_room_;
  std::vector<CarriedCopy> carried_;
  std::set<size_t> makes_result_;
  std::unordered_map<Value, size_t> producer_;
  std::unordered_map<Value, std::vector<size_t>> readers_;
  std::unordered_map<Value, Place> place_;
  std::vector<std::vector<size_t>> next_;  // by step: those that wait for it
  std::vector<int64_t> seen_;              // by step: the last search that met it
  int64_t search_ = 0;
  std::unordered_map<size_t, Place> copy_place_;
  std::vector<size_t> order_;
  std::vector<size_t> sort_;
  TensorRows rows_;  // of equal products
  std::unordered_set<size_t> joined_;
  Plan out_;
};

}  // namespace

Plan plan(const ir::Graph& graph, FusedGraph fused, Together together, LastingInputs lasting, Shortened shortened) {
  drop_reshapes(graph, fused.groups);
  return Planner(graph, std::move(fused), together, std::move(lasting), std::move(shortened)).run();
}

}  // namespace brasa::compiler
