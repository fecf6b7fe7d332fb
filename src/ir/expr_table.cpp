#include "ir/expr_table.h"

#include <algorithm>
#include <array>
#include <climits>
#include <mutex>
#include <unordered_set>

#include "support/checked.h"
#include "support/error.h"
#include "support/hash.h"
#include "support/lazy.h"
#include "support/mutex.h"

namespace brasa::ir {
namespace {

constexpr int64_t kUnknownMin = INT64_MIN, kUnknownMax = INT64_MAX;

// Saturating arithmetic on bounds; an unknown bound stays unknown.
int64_t add_bound(int64_t a, int64_t b, int64_t unknown) {
  int64_t r;
  if (a == unknown || b == unknown || __builtin_add_overflow(a, b, &r)) return unknown;
  return r;
}

struct Interval {
  int64_t min, max;
};

Interval multiply(Interval a, Interval b) {
  // Exact where all four ends are known; sizes and indices are mostly non-negative, so that case keeps half bounds.
  bool known = a.min != kUnknownMin && a.max != kUnknownMax && b.min != kUnknownMin && b.max != kUnknownMax;
  if (known) {
    int64_t lo = INT64_MAX, hi = INT64_MIN;
    for (int64_t x : {a.min, a.max})
      for (int64_t y : {b.min, b.max}) {
        int64_t r;
        if (__builtin_mul_overflow(x, y, &r)) return {kUnknownMin, kUnknownMax};
        lo = std::min(lo, r);
        hi = std::max(hi, r);
      }
    return {lo, hi};
  }
  auto end = [](int64_t x, int64_t y, int64_t unknown) {
    int64_t r;
    return x == unknown || y == unknown || __builtin_mul_overflow(x, y, &r) ? unknown : r;
  };
  auto nonnegative = [](Interval i) { return i.min != kUnknownMin && i.min >= 0; };
  if (nonnegative(a) && nonnegative(b)) return {end(a.min, b.min, 0), end(a.max, b.max, kUnknownMax)};
  bool a_constant = a.min == a.max, b_constant = b.min == b.max;
  if (b_constant) std::swap(a, b);
  if (a_constant || b_constant) {
    int64_t c = a.min;
    if (c == 0) return {0, 0};
    int64_t lo = b.min == kUnknownMin ? kUnknownMin : b.min, hi = b.max;
    if (c > 0) return {end(lo, c, kUnknownMin), end(hi, c, kUnknownMax)};
    return {hi == kUnknownMax ? kUnknownMin : end(hi, c, kUnknownMin),
            lo == kUnknownMin ? kUnknownMax : end(lo, c, kUnknownMax)};
  }
  return {kUnknownMin, kUnknownMax};
}

Interval bounds_of(const ExprNode& n) {
  auto of = [](const Expr& e) { return Interval{e->min, e->max}; };
  switch (n.kind) {
    case ExprKind::Constant: return {n.value, n.value};
    case ExprKind::Size: return {n.value, kUnknownMax};
    case ExprKind::Range:
    case ExprKind::Value: {
      int64_t m = n.args[0]->max;
      return {0, m == kUnknownMax ? m : std::max<int64_t>(m - 1, 0)};
    }
    case ExprKind::Mul: {
      // The coefficient last: the product of sizes has a known end, whichever sign it gets.
      Interval r{1, 1};
      for (const Expr& a : n.args) r = multiply(r, of(a));
      return multiply(r, {n.value, n.value});
    }
    case ExprKind::Add: {
      Interval r{n.value, n.value};
      for (const Expr& a : n.args) r = {add_bound(r.min, a->min, kUnknownMin), add_bound(r.max, a->max, kUnknownMax)};
      return r;
    }
    case ExprKind::FloorDiv: {
      Interval a = of(n.args[0]), b = of(n.args[1]);
      b = {std::max<int64_t>(b.min, 1), std::max<int64_t>(b.max, 1)};
      Interval r{kUnknownMin, kUnknownMax};
      if (a.min != kUnknownMin)
        r.min = a.min >= 0 ? (b.max == kUnknownMax ? 0 : a.min / b.max) : floor_div(a.min, b.min);
      if (a.max != kUnknownMax) r.max = a.max >= 0 ? a.max / b.min : -1;
      return r;
    }
    case ExprKind::Mod: {
      Interval a = of(n.args[0]), b = of(n.args[1]);
      int64_t hi = b.max == kUnknownMax ? kUnknownMax : std::max<int64_t>(b.max, 1) - 1;
      if (a.min != kUnknownMin && a.min >= 0) hi = std::min(hi, a.max);
      return {0, hi};
    }
    case ExprKind::Min: return {std::min(n.args[0]->min, n.args[1]->min), std::min(n.args[0]->max, n.args[1]->max)};
    case ExprKind::Max: return {std::max(n.args[0]->min, n.args[1]->min), std::max(n.args[0]->max, n.args[1]->max)};
  }
  return {kUnknownMin, kUnknownMax};
}

// Of what it stands for: the same in every process.
uint64_t hash_of(const ExprNode& n) {
  uint64_t h = mix(static_cast<uint64_t>(n.kind), n.id);
  h = mix(h, static_cast<uint64_t>(n.value));
  h = mix(h, static_cast<uint64_t>(n.multiple));
  for (const Expr& a : n.args) h = mix(h, a->hash);
  return h;
}

int64_t divisor_of(const ExprNode& n) {
  switch (n.kind) {
    case ExprKind::Constant: return n.value;
    case ExprKind::Size: return n.multiple;
    case ExprKind::Mul: {
      int64_t d = n.value;
      for (const Expr& a : n.args)
        if (__builtin_mul_overflow(d, a->divisor, &d)) return 1;
      return d;
    }
    case ExprKind::Add: {
      int64_t d = n.value;
      for (const Expr& a : n.args) d = common_divisor(d, a->divisor);
      return d;
    }
    case ExprKind::Min:
    case ExprKind::Max: return common_divisor(n.args[0]->divisor, n.args[1]->divisor);
    default: return 1;
  }
}

uint32_t weight_of(const ExprNode& n) {
  uint32_t weight = 1;
  if (n.kind == ExprKind::Range || n.kind == ExprKind::Value) return weight;  // written as its name
  for (const Expr& a : n.args) weight = std::min(kLargestWeight, weight + a->weight);
  return weight;
}

struct NodeHash {
  size_t operator()(const ExprNode* n) const { return n->hash; }
};
struct NodeEqual {
  bool operator()(const ExprNode* a, const ExprNode* b) const {
    return a->kind == b->kind && a->id == b->id && a->value == b->value && a->multiple == b->multiple &&
           a->args == b->args;
  }
};

bool names_itself(const ExprNode& n) {
  return n.kind == ExprKind::Size || n.kind == ExprKind::Range || n.kind == ExprKind::Value;
}

bool is_used(const ExprNode& n) {
  uint32_t own = names_itself(n) ? 1 : 0;  // by the list of its symbols
  return n.lasting || n.users.load(std::memory_order_acquire) != own;
}

// A set that is in parts which grow one after the other: one that has millions of expressions would stop a compilation for a second.
// A part that has doubled drops what nobody uses. The lock of the table is held meanwhile, so nobody finds what goes.
class Interned {
 public:
  Interned() {
    for (size_t i = 0; i < kParts; ++i)
      parts_[i].nodes.max_load_factor(0.5F + 0.5F * static_cast<float>(i) /
                                                 static_cast<float>(kParts));  // each doubles at another size
  }
  ExprNode* find(ExprNode& n) {
    Part& part = part_of(n);
    auto it = part.nodes.find(&n);
    return it == part.nodes.end() ? nullptr : *it;
  }
  void add(ExprNode& n) {
    Part& part = part_of(n);
    if (part.nodes.size() >= part.limit) sweep(part);
    part.nodes.insert(&n);
  }

  size_t size() const {
    size_t all = 0;
    for (const Part& part : parts_) all += part.nodes.size();
    return all;
  }

 private:
  static constexpr size_t kParts = 256, kFewest = 128;
  struct Part {
    std::unordered_set<ExprNode*, NodeHash, NodeEqual> nodes;
    size_t limit = kFewest;
  };
  Part& part_of(const ExprNode& n) { return parts_[n.hash % kParts]; }

  void sweep(Part& part) {
    std::vector<ExprNode*> unused;
    for (ExprNode* n : part.nodes)
      if (!is_used(*n)) unused.push_back(n);
    // With an expression go the parts that were left to it alone, however deep they nest.
    while (!unused.empty()) {
      ExprNode* n = unused.back();
      unused.pop_back();
      part_of(*n).nodes.erase(n);
      ExprTable::destroy(n, unused);
    }
    part.limit = std::max(kFewest, 2 * part.nodes.size());
  }

  std::array<Part, kParts> parts_;
};

// Lives as long as the process, since expressions are in static objects, too.
struct Nodes {
  Mutex mutex;
  uint64_t made = 0;
  Interned interned;
};
Nodes& all_nodes() {
  static constinit Lazy<Nodes> instance;
  return *instance;
}

// An expression mostly has the symbols of its first operand or of its last one, and shares their list.
std::vector<Expr>* symbols_of(const ExprNode& n) {
  static constinit Lazy<std::vector<Expr>> none;
  if (n.args.empty()) return &*none;
  std::vector<Expr> all = *n.args[0]->symbols;
  for (size_t i = 1; i < n.args.size(); ++i) collect_symbols(n.args[i], all);
  if (all.size() == n.args[0]->symbols->size()) return n.args[0]->symbols;
  if (all == *n.args.back()->symbols) return n.args.back()->symbols;
  return new std::vector<Expr>(std::move(all));
}
bool owns_symbols(const ExprNode& n) {
  if (names_itself(n)) return true;
  return !n.args.empty() && n.symbols != n.args.front()->symbols && n.symbols != n.args.back()->symbols;
}

// Numbers that shapes and indices are full of are found without a lock.
constexpr int64_t kSmallest = -16, kLargest = 1024;
bool is_small(int64_t value) { return value >= kSmallest && value <= kLargest; }

}  // namespace

Expr ExprTable::make(ExprKind kind, int64_t value, std::vector<Expr> args, uint32_t id, int64_t multiple) {
  ExprNode n{kind, id, value, multiple, std::move(args), 0, 0, 0, 0, nullptr, 1, 0, false, 0};
  n.hash = hash_of(n);
  Nodes& all = all_nodes();
  std::lock_guard lock(all.mutex);
  if (const ExprNode* known = all.interned.find(n)) return Expr(known);
  Interval b = bounds_of(n);
  int64_t divisor = divisor_of(n);
  uint32_t weight = weight_of(n);
  bool lasting = kind == ExprKind::Size || (kind == ExprKind::Constant && is_small(value));
  auto* node = new ExprNode{kind,  id,      value,   multiple, std::move(n.args), n.hash, all.made++, b.min,
                            b.max, nullptr, divisor, weight,   lasting,           0};
  node->symbols = names_itself(*node) ? new std::vector{Expr(node)} : symbols_of(*node);
  all.interned.add(*node);
  return Expr(node);
}

size_t ExprTable::size() {
  Nodes& all = all_nodes();
  std::lock_guard lock(all.mutex);
  return all.interned.size();
}

void ExprTable::destroy(ExprNode* n, std::vector<ExprNode*>& unused) {
  auto drop = [&](Expr& e) {
    auto* part = const_cast<ExprNode*>(std::exchange(e.node_, nullptr));
    if (part == n || part->lasting) return;
    part->users.fetch_sub(1, std::memory_order_acq_rel);
    if (!is_used(*part)) unused.push_back(part);
  };
  if (owns_symbols(*n)) {
    for (Expr& e : *n->symbols) drop(e);
    delete n->symbols;
  }
  for (Expr& e : n->args) drop(e);
  delete n;
}

Expr::Expr(int64_t constant) : node_(nullptr) {
  static constinit Lazy<std::array<const ExprNode*, kLargest - kSmallest + 1>> small([] {
    std::array<const ExprNode*, kLargest - kSmallest + 1> numbers;
    for (int64_t v = kSmallest; v <= kLargest; ++v)
      numbers[v - kSmallest] = ExprTable::make(ExprKind::Constant, v, {}).node();
    return numbers;
  });
  if (is_small(constant))
    node_ = (*small)[constant - kSmallest];
  else
    *this = ExprTable::make(ExprKind::Constant, constant, {});
}

Expr Expr::size(uint32_t id, int64_t min, int64_t multiple) {
  return ExprTable::make(ExprKind::Size, min, {}, id, multiple);
}
Expr Expr::range(uint32_t id, const Expr& extent) { return ExprTable::make(ExprKind::Range, 0, {extent}, id); }
Expr Expr::value(uint32_t id, const Expr& extent) { return ExprTable::make(ExprKind::Value, 0, {extent}, id); }

int64_t Expr::constant() const {
  BRASA_ASSERT(is_constant(), str(*this), " is not a constant");
  return node_->value;
}
std::optional<int64_t> Expr::maybe_constant() const {
  return is_constant() ? std::optional(node_->value) : std::nullopt;
}

bool is_symbol(const Expr& e) { return names_itself(*e.node()); }

}  // namespace brasa::ir
