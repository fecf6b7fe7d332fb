#include "compiler/loops/linearize.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "compiler/loops/legality.h"
#include "ir/text.h"
#include "support/error.h"
#include "support/fresh_stack.h"

namespace brasa::compiler {

namespace {

constexpr std::string_view kNames[] = {"serial", "parallel", "vector", "unroll", "block", "thread", "call"};

ForKind kind_of(const std::string& name) {
  for (size_t i = 0; i < std::size(kNames); ++i)
    if (kNames[i] == name) return static_cast<ForKind>(i);
  fail_internal(str("loop::for: no kind '", name, "'"));
}

bool is(const Node* n, LoopOp op) { return loop_kind(n->op) == op; }
// What happens at a place in the loops; everything else is computed where it is needed.
bool is_sink(const Node* n) {
  return is(n, LoopOp::Store) || is(n, LoopOp::Prefetch) || is(n, LoopOp::Reduce) || is(n, LoopOp::Scan) ||
         makes_array(n);
}

}  // namespace

LoopAnalysis::LoopAnalysis(const ir::Graph& graph, const std::vector<Ranges>& repeated) : graph_(graph) {
  size_t count = graph.nodes().size();
  free_.assign(count, 0);
  inside_.assign(count, 0);
  for (const Node* n : graph.nodes())
    if (is(n, LoopOp::For)) {
      BRASA_ASSERT(loops_.size() < 64, "more than 64 loops in a kernel");
      For f{n->arg<Expr>(0), kind_of(n->arg<std::string>(1)), static_cast<int>(n->arg<Expr>(2).constant()),
            static_cast<int>(n->arg<Expr>(3).constant())};
      int i = static_cast<int>(loops_.size());
      index_[f.range] = i;
      kinds_[static_cast<int>(f.kind)] |= Ranges{1} << i;
      if (f.kind == ForKind::Parallel || f.kind == ForKind::Block) flat_ |= Ranges{1} << i;
      loops_.push_back(f);
    } else if (is(n, LoopOp::Bind)) {
      binds_[n->arg<Expr>(1)] = n;
    }
  for (const Node* n : graph.nodes()) {
    if (is(n, LoopOp::For)) continue;
    Ranges r = repeated[n->id];
    for (const ir::Arg& a : n->args) {
      if (auto* e = a.get_if<Expr>(); e && !ir::is_input(Value{const_cast<Node*>(n), 0})) r |= of(*e);
      a.for_each_value([&](Value v) { r |= free_[v.node->id]; });
    }
    Ranges closed = 0;
    if (is(n, LoopOp::Reduce) || is(n, LoopOp::Stage))
      for (Expr e : n->arg<std::vector<Expr>>(1)) {
        closed |= Ranges{1} << loop_of(e);
        r |= of(e->args[0]);  // that a loop around it makes longer or shorter
      }
    // A flattened loop has no outside at run time: effects and accumulations all happen in its iterations.
    if (is_sink(n)) r |= flat_;
    if (is(n, LoopOp::Bind) || is(n, LoopOp::Prefetch))
      for (Expr e : n->arg<std::vector<Expr>>(is(n, LoopOp::Bind) ? 2 : 3)) r |= Ranges{1} << loop_of(e);
    inside_[n->id] = r | closed;
    free_[n->id] = r & ~closed;
  }
}

int LoopAnalysis::loop_of(Expr range) const {
  auto it = index_.find(range);
  BRASA_ASSERT(it != index_.end(), "no loop::for for ", range);
  return it->second;
}

Ranges LoopAnalysis::of(Expr e) const {
  Ranges r = 0;
  for (Expr s : *e->symbols)  // a Value's node is among the operands
    if (s->kind == ir::ExprKind::Range) r |= Ranges{1} << loop_of(s) | of(s->args[0]);
  return r;
}

Ranges LoopAnalysis::nested(Ranges r) const {
  Ranges out = r & (kind(ForKind::Serial) | kind(ForKind::Vector));
  if (r & flat_) out |= flat_ & -flat_;
  return out;
}

namespace {

class Linearizer {
 public:
  explicit Linearizer(const LoopAnalysis& a) : a_(a) {}

  // A reduction or a stage, and the loop of a use that is outside of the loops in which it is made.
  using Torn = std::pair<const Node*, int>;

  Block run() {
    find_dependences();
    std::vector<const Node*> sinks;
    for (const Node* n : a_.graph().nodes())
      if (is_sink(n)) sinks.push_back(n);
    Block block = schedule(sinks, 0);
    if (torn_.empty()) hoist(block, 0);
    return block;
  }
  // If there are any, the block is not to be used.
  const std::set<Torn>& torn() const { return torn_; }

 private:
  // What must have happened before: a sink, and the loops within one iteration of which that is already so.
  using Dependences = std::map<const Node*, Ranges>;

  static void merge(Dependences& into, const Node* sink, Ranges inside) {
    auto [it, added] = into.emplace(sink, inside);
    if (!added) it->second &= inside;
  }

  void find_dependences() {
    std::unordered_map<Value, std::vector<const Node*>> stores;
    std::unordered_map<Value, std::vector<const Node*>> loads;
    for (const Node* n : a_.graph().nodes()) {
      Dependences& d = depends_[n];
      std::set<const Node*>& made_of = made_of_[n];
      n->for_each_input([&](Value v) {
        if (is_sink(v.node))
          made_of.insert(v.node);
        else
          made_of.insert(made_of_[v.node].begin(), made_of_[v.node].end());
        if (is_sink(v.node))
          merge(d, v.node, a_.of(v.node));
        else
          for (auto [sink, inside] : depends_[v.node]) merge(d, sink, inside);
      });
      if (is(n, LoopOp::Load)) {
        Value buffer = n->arg<Value>(0);
        for (const Node* s : stores[buffer]) merge(d, s, a_.of(s) & a_.of(n));
        loads[buffer].push_back(n);
      } else if (is(n, LoopOp::Store)) {
        Value buffer = n->arg<Value>(0);
        for (const Node* s : stores[buffer]) merge(d, s, ~Ranges{0});
        for (const Node* load : loads[buffer]) later_[load].push_back(n);
        stores[buffer].push_back(n);
      }
    }
    // A store also comes after every earlier sink that reads what it overwrites.
    for (const auto& [load, writers] : later_)
      for (const Node* sink : a_.graph().nodes())
        if (is_sink(sink) && reads(sink, load))
          for (const Node* w : writers)
            if (w->id > sink->id) merge(depends_[w], sink, ~Ranges{0});
  }

  bool reads(const Node* n, const Node* load) const {
    bool found = false;
    n->for_each_input([&](Value v) {
      if (!found && v.node->id >= load->id) found = v.node == load || (!is_sink(v.node) && reads(v.node, load));
    });
    return found;
  }

  struct Group {
    int position, loop;
    std::vector<const Node*> sinks;
  };

  enum class First : uint8_t { FewestLoops, Outside };
  // What needs the fewest loops first, as far as dependences allow, and what is outside of the others' outermost loop, so that this loop
  // need not end for it. `first` says which of the two counts more.
  std::vector<const Node*> outermost_first(std::vector<const Node*> sinks, Ranges around, First first) const {
    std::vector<const Node*> out;
    auto loops = [&](const Node* s) {
      Ranges rest = a_.nested(a_.inside(s)) & ~around;
      int count = std::popcount(rest), outside = -std::countr_zero(rest);
      return first == First::FewestLoops ? std::pair(count, outside) : std::pair(outside, count);
    };
    auto ready = [&](const Node* s) {
      return std::none_of(sinks.begin(), sinks.end(),
                          [&](const Node* t) { return t != s && depends_.at(s).count(t) > 0; });
    };
    while (!sinks.empty()) {
      auto best = sinks.end();
      for (auto it = sinks.begin(); it != sinks.end(); ++it)
        if ((best == sinks.end() || loops(*it) < loops(*best)) && ready(*it)) best = it;
      BRASA_ASSERT(best != sinks.end(), "loops that depend on each other");
      out.push_back(*best);
      sinks.erase(best);
    }
    return out;
  }

  // Reductions and stages that are made anew in each iteration of a loop and used outside of that iteration.
  std::vector<Torn> torn(const std::vector<Group>& groups) const {
    std::unordered_map<const Node*, const Group*> group;
    for (const Group& g : groups)
      for (const Node* s : g.sinks) group[s] = &g;
    std::vector<Torn> out;
    for (const Group& g : groups)
      for (const Node* s : g.sinks)
        for (const Node* r : made_of_.at(s)) {
          auto it = group.find(r);
          if (it != group.end() && it->second != &g && it->second->loop >= 0 && a_.of(r) >> it->second->loop & 1)
            out.emplace_back(r, g.loop == it->second->loop ? -1 : g.loop);
        }
    return out;
  }

  // Made again in each iteration of a loop around, what is made is what it was, unless that loop writes what it is made of.
  bool can_repeat(const Node* made) const {
    return std::none_of(later_.begin(), later_.end(), [&](const auto& l) { return reads(made, l.first); });
  }

  Block schedule(std::vector<const Node*> sinks, Ranges around) {
    std::vector<Group> groups = grouped(sinks, around);
    std::vector<Torn> apart = torn(groups);
    if (!apart.empty()) {
      auto fits = [&](const Torn& t) { return t.second >= 0 && can_repeat(t.first); };
      for (First first : {First::FewestLoops, First::Outside}) {
        groups = grouped(outermost_first(sinks, around, first), around);
        apart = torn(groups);
        if (std::all_of(apart.begin(), apart.end(), fits)) break;
      }
      BRASA_ASSERT(std::all_of(apart.begin(), apart.end(), fits), "no order of loops fits");
      torn_.insert(apart.begin(), apart.end());
    }
    Block block;
    if (!torn_.empty()) return block;
    for (Group& g : groups) {
      if (g.loop < 0) {
        block.push_back({g.sinks[0], nullptr});
        continue;
      }
      Ranges bit = Ranges{1} << g.loop;
      auto loop = std::make_unique<Loop>();
      loop->loop = g.loop;
      for (const Node* s : g.sinks) {
        Ranges closed = a_.nested(a_.closed(s));
        if (bit == (closed & -closed)) loop->closes.push_back(s);
        if (is(s, LoopOp::Scan) && a_.loop_of(s->arg<Expr>(1)) == g.loop) loop->carries.push_back(s);
      }
      loop->body = schedule(g.sinks, around | bit);
      block.push_back({nullptr, std::move(loop)});
    }
    return block;
  }

  std::vector<Group> grouped(const std::vector<const Node*>& sinks, Ranges around) const {
    std::vector<Group> groups;
    std::unordered_map<const Node*, int> position;
    for (const Node* s : sinks) {
      Ranges rest = a_.nested(a_.inside(s)) & ~around;
      if (!rest) {
        position[s] = static_cast<int>(groups.size());
        groups.push_back({position[s], -1, {s}});
        continue;
      }
      int loop = std::countr_zero(rest);
      // Into the last loop over the range, if all that it needs is there by then.
      Group* into = nullptr;
      for (Group& g : groups)
        if (g.loop == loop) into = &g;
      if (into)
        for (auto [t, inside] : depends_.at(s)) {
          auto it = position.find(t);
          if (it == position.end()) continue;
          bool shared = it->second == into->position && (inside >> loop & 1);
          if (it->second >= into->position && !shared) into = nullptr;
          if (!into) break;
        }
      if (!into) {
        groups.push_back({static_cast<int>(groups.size()), loop, {}});
        into = &groups.back();
      }
      into->sinks.push_back(s);
      position[s] = into->position;
    }
    return groups;
  }

  void collect(const Block& block, std::vector<const Node*>& sinks, Ranges& loops) {
    for (const Item& item : block) {
      if (item.node) {
        sinks.push_back(item.node);
      } else {
        loops |= Ranges{1} << item.loop->loop;
        collect(item.loop->body, sinks, loops);
      }
    }
  }

  void hoist(Block& block, Ranges around) {
    for (Item& item : block) {
      if (!item.loop) continue;
      Loop& loop = *item.loop;
      std::vector<const Node*> sinks;
      Ranges loops = Ranges{1} << loop.loop;
      collect(loop.body, sinks, loops);
      std::vector<bool> seen(a_.graph().nodes().size());
      for (const Node* s : sinks) s->for_each_input([&](Value v) { find_hoisted(v.node, loops, seen, loop.hoisted); });
      hoist(loop.body, around | Ranges{1} << loop.loop);
    }
  }

  void find_hoisted(const Node* n, Ranges loops, std::vector<bool>& seen, std::vector<const Node*>& out) {
    if (seen[n->id] || is_sink(n) || is_input(Value{const_cast<Node*>(n), 0}) || is(n, LoopOp::Table)) return;
    seen[n->id] = true;
    if (!(a_.nested(a_.of(n)) & loops)) {
      // What depends on a sink in these very loops is only known inside them (a store into a buffer that is read).
      out.push_back(n);
      return;
    }
    with_room([&] { n->for_each_input([&](Value v) { find_hoisted(v.node, loops, seen, out); }); });
  }

  const LoopAnalysis& a_;
  std::unordered_map<const Node*, Dependences> depends_;
  std::unordered_map<const Node*, std::set<const Node*>> made_of_;  // the reductions and stages that a node reads
  std::unordered_map<const Node*, std::vector<const Node*>> later_;
  std::set<Torn> torn_;
};

void print(const Nest& nest, const Block& block, int depth, std::string& out) {
  for (const Item& item : block) {
    out.append(depth * 2, ' ');
    if (item.node) {
      out += ir::print(*item.node) + "\n";
      continue;
    }
    const For& f = nest.analysis->loops()[item.loop->loop];
    out += str(kNames[static_cast<int>(f.kind)], " ", f.range, "<", f.extent(), ">");
    if (!item.loop->hoisted.empty()) {
      out += " after";
      for (const Node* n : item.loop->hoisted) out += str(" %", n->id);
    }
    out += "\n";
    print(nest, item.loop->body, depth + 1, out);
  }
}

}  // namespace

Nest linearize(const ir::Graph& graph) {
  std::vector<Ranges> repeated(graph.nodes().size(), 0);
  for (;;) {
    Nest nest;
    nest.analysis = std::make_unique<LoopAnalysis>(graph, repeated);
    check_loops(*nest.analysis);
    Linearizer linearizer(*nest.analysis);
    nest.body = linearizer.run();
    if (linearizer.torn().empty()) return nest;
    for (auto [made, loop] : linearizer.torn()) {
      BRASA_ASSERT(!(repeated[made->id] >> loop & 1), "no order of loops fits");
      repeated[made->id] |= Ranges{1} << loop;
    }
  }
}

std::string print(const Nest& nest) {
  std::string out;
  print(nest, nest.body, 0, out);
  return out;
}

}  // namespace brasa::compiler
