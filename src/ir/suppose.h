#pragma once

#include "ir/facts.h"
#include "support/scoped.h"
#include "support/thread_word.h"

namespace brasa::ir {

/// While one lives, graphs that this thread makes are for a class of sizes each, or for all that their facts leave: the former for single
/// operators, of which few sizes may be seen. Without one they are for all.
class SizeClasses : Scoped<bool> {
 public:
  explicit SizeClasses(bool apart) : Scoped(apart_, apart) {}
  static bool apart() { return apart_; }

 private:
  BRASA_THREAD_WORD static inline bool apart_ = false;
};

/// a == b? As Facts::equal, for a question that decides how fast a graph is and not what it computes: `usual` must be right for all sizes.
/// Where classes of sizes are not told apart that is the answer if nothing is known, and no fact.
bool suppose(Facts& facts, Expr a, Expr b, bool usual);
/// a < b, likewise.
bool suppose_less(Facts& facts, Expr a, Expr b, bool usual);

}  // namespace brasa::ir
