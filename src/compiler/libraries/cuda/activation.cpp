#include "compiler/libraries/cuda/activation.h"

#include <algorithm>
#include <bit>
#include <unordered_map>
#include <unordered_set>

#include "compiler/fusion/indexing.h"
#include "compiler/loops/builder.h"
#include "compiler/loops/math.h"
#include "compiler/loops/ops.h"
#include "ops/table.h"

namespace brasa::compiler {
namespace {

using ir::Node;
using ir::Value;
using ops::ScalarOp;
using runtime::cuda::Epilogue;

constexpr size_t kMostNodes = 192, kMostOperands = 2;

DType dtype_of(Value v) { return type_of(v).dtype; }

// A loop-level graph of one element: numbers become what is stored.
class Function {
 public:
  struct Operand {
    Value value;
    bool product;  // is computed where this is, not before
    std::vector<const Node*> widens;
  };

  Function(DType narrow, const std::function<bool(Value)>& ends) : narrow_(narrow), ends_(ends), builder_(graph_) {
    out_ = builder_.buffer(narrow, int64_t{kMostOperands});
    for (Value& in : in_) in = builder_.number(DType::Float32);
  }
  // Whether all that leads to `v` is constants, elements of few tensors, and what is made of them.
  bool add(Value v) {
    if (made_.count(v.node)) return true;
    const Node* n = v.node;
    if (is_constant(n)) return keep(n, builder_.constant(n->args[0], dtype_of(v)));
    if (converts(n) && dtype_of(n->arg<Value>(0)) == narrow_) return add_element(n);
    ScalarOp op = scalar_op_of(n->op);
    bool single = dtype_of(v) == DType::Float32 || dtype_of(v) == DType::Bool;
    if (op == ScalarOp::None || op == ScalarOp::Convert || !single || made_.size() == kMostNodes) return false;
    std::vector<Value> operands;
    bool all = true;
    n->for_each_input([&](Value o) {
      all = all && type_of(o).shape == type_of(v).shape && add(o);
      if (all) operands.push_back(made_.at(o.node));
    });
    if (!all) return false;
    inside_.push_back(n);
    switch (operands.size()) {
      case 1: return keep(n, builder_.op(op, {operands[0]}));
      case 2: return keep(n, builder_.op(op, {operands[0], operands[1]}));
      case 3: return keep(n, builder_.op(op, {operands[0], operands[1], operands[2]}));
      default: return false;
    }
  }
  void store(Value result) { builder_.store(out_, stored_++, builder_.convert(made_.at(result.node), narrow_)); }
  const ir::Graph& graph() const { return graph_; }
  std::vector<Operand>& operands() { return operands_; }
  std::vector<const Node*> inside() { return std::move(inside_); }

 private:
  bool keep(const Node* n, Value v) {
    made_[n] = v;
    return true;
  }
  // What is widened, in the order in which it was made: the same elements, whatever the dimensions before the last one.
  bool add_element(const Node* n) {
    std::vector<const Node*> way = {n};
    Value v = n->arg<Value>(0);
    if (type_of(v).rank() == 0) return false;
    ir::Expr columns = type_of(v).shape.back();
    for (; !ends_(v) && (prim_of(v) == Prim::Reshape || prim_of(v) == Prim::Later); v = v.node->arg<Value>(0)) {
      if (!(type_of(v.node->arg<Value>(0)).shape.back() == columns)) return false;
      way.push_back(v.node);
    }
    if (!ends_(v) && !ir::is_input(v)) return false;
    bool later = std::any_of(way.begin(), way.end(), [](const Node* w) { return prim_of(w) == Prim::Later; });
    size_t k = 0;
    while (k < operands_.size() && operands_[k].value != v) ++k;
    if (k == kMostOperands) return false;
    if (k == operands_.size()) operands_.push_back({v, ends_(v), {}});
    operands_[k].product = operands_[k].product && !later;
    for (const Node* w : way)
      if (std::vector<const Node*>& all = operands_[k].widens; std::find(all.begin(), all.end(), w) == all.end())
        all.push_back(w);
    return keep(n, in_[k]);
  }

  DType narrow_;
  const std::function<bool(Value)>& ends_;
  ir::Graph graph_{ir::Level::Loops};
  LoopBuilder builder_;
  Value out_, in_[kMostOperands];
  int64_t stored_ = 0;
  std::vector<Operand> operands_;
  std::unordered_map<const Node*, Value> made_;
  std::vector<const Node*> inside_;
};

// The expanded graph as steps, where there is one for each of its nodes.
class Steps {
 public:
  // `operands[i]`: which of the epilogue's numbers the i-th is.
  Steps(const ExpandedMath& math, std::vector<int16_t> operands) : math_(math), operands_(std::move(operands)) {
    out_.operands = static_cast<int>(operands_.size());
    out_.results.clear();
    // A product that is only added to something is rounded with the sum.
    std::unordered_map<const Node*, int> uses = ir::count_uses(*math.graph);
    for (const Node* n : math.graph->nodes()) {
      if (scalar_op_of(n->op) != ScalarOp::Add || math.exact.count(n)) continue;
      for (size_t i : {0, 1}) {
        const Node* product = n->arg<Value>(i).node;
        if (scalar_op_of(product->op) != ScalarOp::Mul || uses[product] > 1 || math.exact.count(product)) continue;
        sums_[n] = i;
        products_.insert(product);
        break;
      }
    }
  }

  std::optional<Epilogue> all() {
    for (Node* n : math_.graph->nodes()) {
      if (int input = math_.graph->input_index(n->out()); input >= 0) {
        // Behind the memory of what is stored; those that nothing reads have no number.
        if (auto operand = static_cast<size_t>(input) - 1; input > 0 && operand < operands_.size())
          numbers_[n] = operands_[operand];
      } else if (loop_kind(n->op) == LoopOp::Store) {
        out_.results.push_back(number(n->arg<Value>(2)));
      } else if (!products_.count(n) && !add(n)) {
        return std::nullopt;
      }
    }
    if (out_.steps.empty()) return std::nullopt;
    return std::move(out_);
  }

 private:
  using Op = Epilogue::Op;
  int16_t number(Value v) const { return numbers_.at(v.node); }
  bool step(const Node* n, Op op, std::array<int16_t, 3> of, uint32_t bits = 0) {
    numbers_[n] = static_cast<int16_t>(operands_.size() + out_.steps.size());
    out_.steps.push_back({op, of, bits});
    return true;
  }
  bool add(const Node* n) {
    auto of = [&](size_t i) { return number(n->arg<Value>(i)); };
    if (is_constant(n)) {
      const auto* number = n->args[0].get_if<double>();
      const auto* whole = n->args[0].get_if<ir::Expr>();
      bool known = number || (whole && whole->is_constant());
      bool single = n->types[0].dtype == DType::Float32;
      if (!known || !(single || (whole && n->types[0].dtype == DType::Int32))) return false;
      auto bits = single ? std::bit_cast<uint32_t>(static_cast<float>(number ? *number : double(whole->constant())))
                         : static_cast<uint32_t>(whole->constant());
      return step(n, Op::Number, {}, bits);
    }
    switch (scalar_op_of(n->op)) {
      case ScalarOp::Add:
        if (auto sum = sums_.find(n); sum != sums_.end()) {
          const Node* product = n->arg<Value>(sum->second).node;
          return step(n, Op::Fma,
                      {number(product->arg<Value>(0)), number(product->arg<Value>(1)), of(1 - sum->second)});
        }
        return step(n, Op::Add, {of(0), of(1)});
      case ScalarOp::Sub: return step(n, Op::Sub, {of(0), of(1)});
      case ScalarOp::Mul: return step(n, Op::Mul, {of(0), of(1)});
      case ScalarOp::Div:
        return math_.reciprocals.count(n) ? step(n, Op::Reciprocal, {of(1)}) : step(n, Op::Div, {of(0), of(1)});
      case ScalarOp::Min: return step(n, Op::Min, {of(0), of(1)});
      case ScalarOp::Max: return step(n, Op::Max, {of(0), of(1)});
      case ScalarOp::Abs: return step(n, Op::Abs, {of(0)});
      case ScalarOp::Neg: return step(n, Op::Neg, {of(0)});
      case ScalarOp::Exp2: return step(n, Op::Exp2, {of(0)});
      case ScalarOp::Rsqrt: return step(n, Op::Rsqrt, {of(0)});
      case ScalarOp::Lt: return step(n, Op::Less, {of(0), of(1)});
      case ScalarOp::Gt: return step(n, Op::Less, {of(1), of(0)});
      case ScalarOp::Select: return step(n, Op::Select, {of(0), of(1), of(2)});
      case ScalarOp::BitAnd: return step(n, Op::And, {of(0), of(1)});
      case ScalarOp::BitXor: return step(n, Op::Xor, {of(0), of(1)});
      case ScalarOp::Shl: {
        const Node* by = n->arg<Value>(1).node;
        return is_constant(by) &&
               step(n, Op::Shl, {of(0)}, static_cast<uint32_t>(by->args[0].get<ir::Expr>().constant()));
      }
      // A result, which is rounded as it is written.
      case ScalarOp::Convert: numbers_[n] = of(0); return is_reduced_floating(n->types[0].dtype);
      case ScalarOp::Bitcast: numbers_[n] = of(0); return true;
      default: return false;
    }
  }

  const ExpandedMath& math_;
  std::vector<int16_t> operands_;
  std::unordered_map<const Node*, size_t> sums_;  // which operand is a product that is rounded with them
  std::unordered_set<const Node*> products_;
  std::unordered_map<const Node*, int16_t> numbers_;
  Epilogue out_;
};

}  // namespace

std::optional<Activation> activation_of(std::span<const Node* const> stored, const std::function<bool(Value)>& ends) {
  DType narrow = stored[0]->types[0].dtype;
  Function function(narrow, ends);
  for (const Node* n : stored) {
    bool rounds = converts(n) && is_reduced_floating(narrow) && n->types[0].dtype == narrow &&
                  type_of(n->arg<Value>(0)).dtype == DType::Float32;
    if (!rounds) return std::nullopt;
    Value result = n->arg<Value>(0);
    if (scalar_op_of(result.node->op) == ScalarOp::None || !function.add(result)) return std::nullopt;
    function.store(result);
  }
  // All that the others are made of is there before the latest one.
  std::vector<Function::Operand>& operands = function.operands();
  size_t of = operands.size();
  for (size_t i = 0; i < operands.size(); ++i)
    if (operands[i].product && (of == operands.size() || operands[i].value.node->id > operands[of].value.node->id))
      of = i;
  if (of == operands.size()) return std::nullopt;
  std::vector<int16_t> numbers = {0};
  if (operands.size() > 1) numbers = of == 0 ? std::vector<int16_t>{0, 1} : std::vector<int16_t>{1, 0};
  std::optional<Epilogue> epilogue = Steps(expand_math(function.graph(), {.gpu = true}, false), numbers).all();
  if (!epilogue) return std::nullopt;
  Value other = operands.size() > 1 ? operands[1 - of].value : Value{};
  return Activation{operands[of].value, other, std::move(*epilogue), function.inside(), std::move(operands[of].widens)};
}

}  // namespace brasa::compiler
