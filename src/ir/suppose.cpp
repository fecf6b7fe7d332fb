#include "ir/suppose.h"

#include <algorithm>

namespace brasa::ir {

bool suppose(Facts& facts, Expr a, Expr b, bool usual) {
  if (SizeClasses::apart()) return facts.equal(a, b);
  a = facts.known(a);
  b = facts.known(b);
  if (auto known = provably_equal(a, b)) return *known;
  const std::vector<Fact>& all = facts.facts();
  auto found = std::find_if(all.begin(), all.end(), [&](const Fact& f) {
    return (f.left == a && f.right == b) || (f.left == b && f.right == a);
  });
  return found == all.end() ? usual : found->equal;
}

bool suppose_less(Facts& facts, Expr a, Expr b, bool usual) {
  if (auto known = provably_less(a, b)) return *known;
  return suppose(facts, min(a + 1, b), a + 1, usual);
}

}  // namespace brasa::ir
