#pragma once

#include <brasa/stats.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "compiler/kernels/optimizer.h"
#include "compiler/pipeline.h"

namespace brasa::test {

/// What compilations took of processor time for each node of the graphs that were compiled in a measured call: all of
/// capture, derivation, passes and code generation, on all threads but the one that optimizes kernels beside the calls, which is counted apart. Figures that programs print, and the call that took the most; what is allowed to them is
/// no test, since a kernel that is in no cache takes as long as LLVM does.
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
      std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
      ~Measured() {
        double took = now() - start;
        cost.add(what, before, nodes, took,
                 std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
      }
    } measured{*this, what};
    return f();
  }
  std::string text() const {
    if (costs_.empty()) return "nothing was compiled";
    std::vector<double> sorted = costs_;
    std::sort(sorted.begin(), sorted.end());
    auto at = [&](double share) {
      return std::to_string(sorted[static_cast<size_t>(share * static_cast<double>(sorted.size() - 1))]);
    };
    std::string beside = std::to_string(1e-6 * static_cast<double>(compiler::optimizer_nanoseconds()));
    return "compiling took at most " + at(1) + " ms a node (" + worst_ + "); 99 of 100 calls took at most " + at(0.99) +
           ", half of the " + std::to_string(sorted.size()) + " at most " + at(0.5) +
           "; kernels were optimized beside them in " + beside + " ms";
  }

 private:
  static double now() {
    timespec t{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) * 1e-6 -
           static_cast<double>(compiler::optimizer_nanoseconds()) * 1e-6;
  }
  void add(const std::string& what, const Stats& before, int64_t nodes_before, double milliseconds, double wall) {
    Stats after = stats();
    int64_t nodes = compiler::compiled_nodes() - nodes_before,
            generated = after.kernels_generated - before.kernels_generated;
    if (std::getenv("BRASA_COMPILE_COSTS"))  // each call
      std::cout << milliseconds << " ms, " << nodes << " nodes, " << after.compilations - before.compilations
                << " graphs, " << generated << " kernels generated, "
                << after.kernels_optimized - before.kernels_optimized << " of them again, " << wall
                << " ms of wall time\n";
    if (nodes == 0) return;
    costs_.push_back(milliseconds / static_cast<double>(nodes));
    if (costs_.back() < *std::max_element(costs_.begin(), costs_.end())) return;
    worst_ = what + ": " + std::to_string(nodes) + " nodes in " +
             std::to_string(after.compilations - before.compilations) + " graphs, " + std::to_string(generated) +
             " kernels generated";
  }

  std::vector<double> costs_;  // ms a node
  std::string worst_;
};

}  // namespace brasa::test
