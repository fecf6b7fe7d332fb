#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/expr.h"

namespace brasa::ir {

/// An answer about sizes that a graph was specialised on: `left == right`, or its negation. One variant of an
/// executable is valid exactly where all of its facts hold.
struct Fact {
  Expr left, right;
  bool equal;
  friend bool operator==(const Fact& a, const Fact& b) {
    return a.left == b.left && a.right == b.right && a.equal == b.equal;
  }
};
void append_to(std::string& out, const Fact& f);  // "s0 == s1", "s0 != 1"

/// Answers questions about sizes while a graph is built: by proof where that is possible, otherwise from the example
/// sizes of this call (`hints[id]` is the value of s<id>), and then remembers the answer as a fact.
class Facts {
 public:
  explicit Facts(std::vector<int64_t> hints = {}) : hints_(std::move(hints)) {}

  bool equal(Expr a, Expr b);
  /// The value of the example call; brasa::InternalError without hints.
  int64_t hint(Expr e) const;
  bool has_hint(Expr e) const;
  const std::vector<Fact>& facts() const { return facts_; }
  /// `e` with what the facts `symbol == constant or symbol` say put in.
  Expr known(Expr e) const;

 private:
  std::vector<int64_t> hints_;
  std::vector<Fact> facts_;
};

}  // namespace brasa::ir
