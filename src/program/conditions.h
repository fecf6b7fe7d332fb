#pragma once

#include <vector>

#include "ir/facts.h"

namespace brasa::program {

/// Facts about symbols in a form that is quick to check.
class Conditions {
 public:
  Conditions() = default;
  explicit Conditions(std::vector<ir::Fact> facts);

  /// The first fact that does not hold for these values of the symbols (by id), or null.
  const ir::Fact* failed(const int64_t* symbols) const;
  bool hold(const int64_t* symbols) const { return !failed(symbols); }
  const std::vector<ir::Fact>& facts() const { return facts_; }

 private:
  struct Test {
    enum class Right : uint8_t { Constant, Symbol, Expression } right;
    bool equal;
    uint32_t left;    // a symbol, unless `right` is Expression
    int64_t operand;  // the constant, or the symbol's id
  };
  std::vector<ir::Fact> facts_;
  std::vector<Test> tests_;  // one for each fact
};

}  // namespace brasa::program
