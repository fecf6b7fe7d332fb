#pragma once

#include <optional>
#include <span>
#include <vector>

#include "capture/trace.h"

namespace brasa::capture {

/// What is known of an event before calls differ in its sizes and integers.
struct InputHint {
  bool fixed = false;         // they are not general at once, whatever `dynamic` says
  uint64_t dynamic_dims = 0;  // these are, a bit for each
  /// Of a call: arguments, a bit for each, that are what they are in every call.
  uint64_t exact = 0;
};

/// Makes the events of a new trace from those of a call. Where another trace, the model, has an event of the same sort at the
/// same place, what differs from it becomes general: a size of an input a symbol, an integer an expression of the symbols
/// that fits both calls or a symbol of its own, any other number an argument. What a row has to know (ir::NumberUse) stays.
class Generaliser {
 public:
  /// `now` is what the symbols and arguments of `trace` are in this call; it grows with them.
  Generaliser(Trace& trace, Binding& now, std::optional<bool> dynamic) : trace_(trace), now_(now), dynamic_(dynamic) {
    for (const Event& e : trace.events) facts_.insert(facts_.end(), e.facts.begin(), e.facts.end());
  }

  /// Takes the model if its events up to here are those of the trace, for other values of its symbols.
  bool set_model(const Trace& model);
  const Trace* model() const { return model_; }
  /// Appends an event, which is given with all its numbers. brasa::Error if the call is wrong; then nothing is appended.
  void add(const Event& event, const InputHint& hint);

 private:
  Event generalised(const Event& event, const Event* known, const InputHint& hint);
  ir::Expr size(ir::Expr known, int64_t value);
  ir::Expr new_size(int64_t value, size_t dim, const InputHint& hint);
  ir::Expr integer(std::optional<ir::Expr> known, int64_t value, bool own);
  ir::Arg number(const ir::Arg* known, const ir::Arg& literal, const ir::Param& p);
  std::optional<ir::Expr> translated(ir::Expr known) const;
  /// None of those that are left out.
  std::optional<ir::Expr> same_symbol(int64_t old, int64_t value, std::span<const uint32_t> left_out = {}) const;
  bool was(const ir::Expr& e, int64_t old) const;
  std::vector<ir::Expr> made_sizes(int64_t old, int64_t value) const;
  std::optional<ir::Expr> enlarged(int64_t old, int64_t value) const;
  std::vector<ir::Expr> fitting(int64_t old, int64_t value) const;
  std::optional<ir::Expr> solved(int64_t old, int64_t value) const;
  ir::Expr new_symbol(int64_t old, int64_t value);
  ir::Expr argument_symbol(int64_t old, int64_t value);
  void learn(const Event& own, const Event& known);
  void learn(ir::Expr own, ir::Expr known);
  std::vector<ir::Type> types_of(const Event& event, ir::Facts& facts) const;

  Trace& trace_;
  Binding& now_;
  std::optional<bool> dynamic_;
  const Trace* model_ = nullptr;
  const Event* event_ = nullptr;                     // that is being added
  Binding old_;                                      // what the symbols and arguments are in the model's call
  std::vector<std::optional<ir::Expr>> from_model_;  // by the model's symbols
  std::vector<ir::Fact> facts_;
  /// The same, for the symbols as they are.
  ir::Facts& facts_here();
  ir::Facts asked_;
  std::optional<std::vector<int64_t>> asked_for_;  // absent: not made
};

}  // namespace brasa::capture
