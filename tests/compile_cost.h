#pragma once

#include <brasa/stats.h>
#include <time.h>

#include <string>

#include "compiler/pipeline.h"

namespace brasa::test {

/// The call of all measured ones whose compilations took the most processor time (of all threads) for each node of the graphs that were
/// compiled in it: all of capture, derivation, passes and code generation. A figure that programs print; what is allowed to it is no test,
/// since a kernel that is in no cache takes as long as LLVM does.
class CompileCost {
 public:
  template <class F>
  auto of(const std::string& what, F f) {
    struct Measured {
      CompileCost& cost;
      const std::string& what;
      Stats before = stats();
      int64_t nodes = compiler::compiled_nodes();
      double start = now();
      ~Measured() { cost.add(what, before, nodes, now() - start); }
    } measured{*this, what};
    return f();
  }
  std::string text() const {
    return worst_.empty() ? "nothing was compiled"
                          : "compiling took at most " + std::to_string(milliseconds_) + " ms a node (" + worst_ + ")";
  }

 private:
  static double now() {
    timespec t{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) * 1e-6;
  }
  void add(const std::string& what, const Stats& before, int64_t nodes_before, double milliseconds) {
    Stats after = stats();
    int64_t nodes = compiler::compiled_nodes() - nodes_before,
            generated = after.kernels_generated - before.kernels_generated;
    if (nodes == 0 || milliseconds <= milliseconds_ * static_cast<double>(nodes)) return;
    milliseconds_ = milliseconds / static_cast<double>(nodes);
    worst_ = what + ": " + std::to_string(nodes) + " nodes in " +
             std::to_string(after.compilations - before.compilations) + " graphs, " + std::to_string(generated) +
             " kernels generated";
  }

  double milliseconds_ = 0;
  std::string worst_;
};

}  // namespace brasa::test
