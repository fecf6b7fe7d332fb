#pragma once

#include <string>
#include <vector>

#include <brasa/tensor.h>

/// Which part of a graph goes wrong. A graph is text, as `explain` and BRASA_LOGS=graph write it.
///
///     Minified m = minify(text);
///     std::cout << m.failure << "\n" << m.graph;
///     std::ofstream("small.cpp") << reproducer(m);
namespace brasa {

struct GraphCheck {
  std::string backend = "inductor";   ///< what is compared with the reference interpreter
  std::vector<Tensor> inputs = {};    ///< of the graph, in order; none: drawn
  std::vector<int64_t> symbols = {};  ///< what s0, s1, … are in this call
  uint64_t seed = 0;                  ///< of drawn inputs: floats are normally distributed, integers 0 or 1
  double tolerance = 0;               ///< of the differences, relative to the largest value; 0: by dtype
};

/// Compiles and runs the graph, and says what is wrong: an error, or the first result that is not the interpreter's. Empty: nothing.
/// brasa::Error if the text is no graph, the inputs do not fit, or the interpreter itself fails.
BRASA_API std::string check_graph(const std::string& graph, const GraphCheck& check = {});

/// A graph with constant sizes of which nothing can be left out.
struct Minified {
  std::string graph;
  std::string failure;         ///< what check_graph says of it
  std::vector<Tensor> inputs;  ///< empty: it fails on drawn ones, too
  int64_t operators = 0;
  GraphCheck check;
};

/// Bisects a graph that fails: leaves outputs and operators out, and gives the others the values that those have, as long as it fails in the
/// same way. brasa::Error if it does not fail. A part that ends the process is not found.
BRASA_API Minified minify(const std::string& graph, const GraphCheck& check = {});

/// A C++ program that shows the failure and returns 1, and 0 once it is gone. Inputs that are not drawn stand in it.
BRASA_API std::string reproducer(const Minified& minified);

}  // namespace brasa
