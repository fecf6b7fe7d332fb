#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "support/str.h"

namespace brasa::ir {

using brasa::append_to;

struct ExprNode;

/// A symbolic 64-bit integer: a size, a stride, an index. Interned for as long as anybody uses it and kept in normal
/// form (an expanded polynomial over symbols, floor divisions, remainders, minima and maxima), so equal expressions
/// mostly are the same pointer, and `==` on Exprs is structural equality. Thread-safe.
class Expr {
 public:
  Expr() : Expr(int64_t{0}) {}
  inline Expr(const Expr& other) noexcept;
  Expr(Expr&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
  Expr& operator=(Expr other) noexcept {
    std::swap(node_, other.node_);
    return *this;
  }
  inline ~Expr();
  Expr(int64_t constant);                          // NOLINT: a number is an Expr
  Expr(int constant) : Expr(int64_t{constant}) {}  // NOLINT

  /// The size symbol `s<id>`: at least `min`, and a multiple of `multiple`.
  static Expr size(uint32_t id, int64_t min = 0, int64_t multiple = 1);
  /// The loop index `r<id>`, in [0, extent).
  static Expr range(uint32_t id, const Expr& extent);
  /// The integer `v<id>` that a kernel computes (an index read from memory), in [0, extent).
  static Expr value(uint32_t id, const Expr& extent);

  inline bool is_constant() const;
  bool is(int64_t v) const { return is_constant() && constant() == v; }
  int64_t constant() const;  // only if is_constant()
  std::optional<int64_t> maybe_constant() const;

  const ExprNode* operator->() const { return node_; }
  const ExprNode* node() const { return node_; }
  friend bool operator==(const Expr& a, const Expr& b) { return a.node_ == b.node_; }

 private:
  inline explicit Expr(const ExprNode* node);
  friend class ExprTable;
  const ExprNode* node_;
};

enum class ExprKind : uint8_t {
  Constant,  // value
  Size,      // s<id>: value = min, multiple
  Range,     // r<id>: args[0] = extent
  Value,     // v<id>: args[0] = extent
  Mul,       // value * Π args, args sorted atoms (may repeat), value != 0
  Add,       // value + Σ args, args are Mul or atoms, sorted
  FloorDiv,  // floor(args[0] / args[1])
  Mod,       // args[0] - args[1] * floor(args[0] / args[1])
  Min,
  Max,
};

struct ExprNode {
  ExprKind kind;
  uint32_t id;       // of a symbol
  int64_t value;     // see ExprKind
  int64_t multiple;  // of a Size
  std::vector<Expr> args;
  uint64_t hash;               // of what it stands for: the same in every process
  uint64_t order;              // creation order
  int64_t min, max;            // inclusive bounds; INT64_MIN / INT64_MAX mean unknown
  std::vector<Expr>* symbols;  // the distinct ones in order of first appearance
  int64_t divisor;             // of every value
  uint32_t weight;             // nodes of the expression written out as a tree, at most kLargestWeight
  bool lasting;                // for the life of the process: nobody counts its users
  mutable std::atomic<uint32_t> users;
};
inline constexpr uint32_t kLargestWeight = 1u << 30;

inline Expr::Expr(const ExprNode* node) : node_(node) {
  if (!node->lasting) node->users.fetch_add(1, std::memory_order_relaxed);
}
inline Expr::Expr(const Expr& other) noexcept : Expr(other.node_) {}
// What nobody uses stays in the table until it is swept, so that what is made again soon is found.
inline Expr::~Expr() {
  if (node_ && !node_->lasting) node_->users.fetch_sub(1, std::memory_order_release);
}
inline bool Expr::is_constant() const { return node_->kind == ExprKind::Constant; }

Expr operator+(const Expr& a, const Expr& b);
Expr operator-(const Expr& a, const Expr& b);
Expr operator*(const Expr& a, const Expr& b);
Expr operator-(const Expr& a);
/// Rounds towards minus infinity; b > 0 wherever it is evaluated.
Expr floordiv(const Expr& a, const Expr& b);
Expr mod(const Expr& a, const Expr& b);
Expr ceildiv(const Expr& a, const Expr& b);
Expr min(const Expr& a, const Expr& b);
Expr max(const Expr& a, const Expr& b);

/// What can be decided without values: true, false or unknown.
std::optional<bool> provably_equal(const Expr& a, const Expr& b);
std::optional<bool> provably_less(const Expr& a, const Expr& b);
/// True if a is a multiple of d for every value of its symbols.
bool provably_divisible(const Expr& a, int64_t d);

/// Evaluates with `symbol` giving the value of each symbol node.
int64_t evaluate(const Expr& e, const std::function<int64_t(const ExprNode&)>& symbol);
/// Replaces symbols; `f` gives nothing to keep one.
Expr substitute(const Expr& e, const std::function<std::optional<Expr>(Expr symbol)>& f);
/// Adds the distinct symbols in order of first appearance.
void collect_symbols(const Expr& e, std::vector<Expr>& out);
bool contains_symbol(const Expr& e, const Expr& symbol);
bool is_symbol(const Expr& e);

Expr product(std::span<const Expr> items);

/// For text: "s0 * 4 + 1", "(s0 + 3) // 4", "min(s0, 8)". Symbols print as their names alone. Expressions share parts, so that text can
/// be much longer than what it stands for: a part that is very long is "e#" and a number of its own in this process.
void append_to(std::string& out, const Expr& e);
/// The same; `part` is asked first for each part, the whole included, and true if it printed it.
void append_to(std::string& out, const Expr& e, const std::function<bool(Expr part)>& part);

}  // namespace brasa::ir

template <>
struct std::hash<brasa::ir::Expr> {
  size_t operator()(const brasa::ir::Expr& e) const { return reinterpret_cast<size_t>(e.node()) >> 4; }
};
