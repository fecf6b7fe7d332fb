#pragma once

#include <span>

#include <brasa/call.h>

#include "capture/trace.h"
#include "tensor/parse.h"
#include "tensor/tensor_impl.h"

namespace brasa::capture {

/// A call whose tensors have numbers. The operand of a view's chain stands in for the first argument, which is empty.
struct Numbered {
  const ops::Row& row;
  std::span<const CallArg> args;
  std::span<const ir::Value> operands;
  bool view;

  CallArg::Kind kind(size_t i) const { return view && i == 0 ? CallArg::Kind::Tensor : args[i].kind; }
  bool is_list(size_t i) const {
    return kind(i) == CallArg::Kind::Tensors || kind(i) == CallArg::Kind::OptionalTensors;
  }
  /// How many operands an argument takes.
  size_t count(size_t i) const { return is_list(i) ? args[i].size : kind(i) == CallArg::Kind::Tensor; }
  ir::Args node_args() const;
};

/// See ir::Input.
inline bool goes_by_value(const TensorImpl& t) {
  return t.device().on_host() && (t.rank() == 0 || t.storage->travels());
}

/// Compares what happens with the events of a trace, and learns from it what the trace's symbols and arguments are in this
/// call.
class Matching {
 public:
  Matching(const Trace& trace, Binding& binding) : trace_(trace), binding_(binding) {}

  /// Whether a call surely is `known`, found without making an event of it.
  bool call(const Event& known, const Numbered& call);
  /// The same, with the values of its tensors from `operand(const Tensor&)`.
  template <class F>
  bool call(const Event& known, std::span<const CallArg> args, F operand) {
    if (args.size() > known.args.size()) return false;
    for (size_t i = 0; i < args.size(); ++i) {
      const CallArg& a = args[i];
      const ir::Arg& at = known.args[i];
      if (a.kind == CallArg::Kind::Tensor) {
        auto* v = at.get_if<ir::Value>();
        if (!v || !(*v == operand(*a.tensor))) return false;
      } else if (a.kind == CallArg::Kind::Tensors) {
        auto* list = at.get_if<std::vector<ir::Value>>();
        if (!list || !std::equal(list->begin(), list->end(), a.tensor, a.tensor + a.size,
                                 [&](ir::Value v, const Tensor& t) { return v == operand(t); }))
          return false;
      } else if (!literal(known, a, i)) {
        return false;
      }
    }
    return (args.size() == known.args.size() && known.facts.empty()) || rest(known, args.size());
  }
  bool input(const Event& known, const TensorImpl& t);
  /// Whether `known` is `other`, an event under a binding of its own.
  bool event(const Event& known, const Event& other, const Binding& others);
  /// Forgets what was learnt since this was made.
  void undo();

 private:
  bool size(ir::Expr known, int64_t v);
  bool number(uint32_t argument, const Scalar& v);
  bool literal(const Event& known, const CallArg& a, size_t i);
  bool rest(const Event& known, size_t given) const;
  bool sizes(const std::vector<ir::Expr>& known, const std::vector<ir::Expr>& other, const Binding& others);
  bool facts(const Event& known) const;

  const Trace& trace_;
  Binding& binding_;
  SmallVector<uint64_t, 4> bound_;  // here: twice a symbol's id, twice a number's position and 1
};

/// Integers that are the negative of a symbol's value: a symbol is a size, which is not negative; -1 often means something else.
inline bool is_negated(int64_t v) { return v < -1 && v >= -eager::kLargestSymbol; }
/// The same of expressions.
inline bool is_negated(ir::Expr e) {
  return e->kind == ir::ExprKind::Mul && e->value == -1 && e->args.size() == 1 && ir::is_symbol(e->args[0]);
}
/// A literal of an event as a number; nothing for other arguments.
std::optional<Scalar> number_of(const ir::Arg& a, const Binding& binding);
bool same_number(const Scalar& a, const Scalar& b);
/// Of the same sort, so that one may be a generalisation of the other.
bool alike(const Event& a, const Event& b);

}  // namespace brasa::capture
