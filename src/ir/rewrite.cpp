#include "ir/rewrite.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>

#include "ir/copy.h"
#include "support/error.h"
#include "support/fresh_stack.h"

namespace brasa::ir {

// A pattern is a tree of calls, names and numbers.
struct RuleSet::Pattern {
  enum Kind { Call, Name, Number, Anything } kind = Anything;
  const Op* op = nullptr;
  std::string_view name;
  double number = 0;
  std::vector<Pattern> args;
};

struct RuleSet::Compiled {
  const Rule* rule;
  Pattern left, right;
};

namespace {

bool equals(const Arg& a, double number) {
  if (auto* d = a.get_if<double>()) return std::bit_cast<uint64_t>(*d) == std::bit_cast<uint64_t>(number);
  if (std::signbit(number) && number == 0) return false;
  if (auto* e = a.get_if<Expr>()) return e->is_constant() && static_cast<double>(e->constant()) == number;
  if (auto* b = a.get_if<bool>()) return static_cast<double>(*b) == number;
  return false;
}

void skip(std::string_view& s, std::string_view what) {
  while (s.starts_with(' ')) s.remove_prefix(1);
  BRASA_ASSERT(s.starts_with(what), "a rule: expected '", what, "' before '", s, "'");
  s.remove_prefix(what.size());
}

bool is_word(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; }

}  // namespace

const Arg& Match::operator[](std::string_view name) const {
  for (const auto* list : {&bound_, &made_})
    for (const auto& [n, value] : *list)
      if (n == name) return value;
  fail_internal(str("a rule has no '", name, "'"));
}

RuleSet::Pattern RuleSet::parse(std::string_view& s, const OpFinder& find) const {
  skip(s, "");
  Pattern p;
  if (s.starts_with('-') || (!s.empty() && s[0] >= '0' && s[0] <= '9')) {
    p.kind = Pattern::Number;
    auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), p.number);
    BRASA_ASSERT(error == std::errc(), "a rule: no number at '", s, "'");
    s.remove_prefix(static_cast<size_t>(end - s.data()));
    return p;
  }
  size_t n = 0;
  while (n < s.size() && is_word(s[n])) ++n;
  BRASA_ASSERT(n > 0, "a rule: no name at '", s, "'");
  p.name = s.substr(0, n);
  s.remove_prefix(n);
  if (!s.starts_with('(')) {
    p.kind = p.name == "_" ? Pattern::Anything : Pattern::Name;
    return p;
  }
  p.kind = Pattern::Call;
  p.op = find(p.name);
  BRASA_ASSERT(p.op, "a rule names '", p.name, "', which is no op");
  for (skip(s, "("); !s.starts_with(')');) {
    p.args.push_back(parse(s, find));
    // A number stands for a constant tensor where the op takes a tensor.
    Pattern& a = p.args.back();
    const auto& params = p.op->schema.params;
    if (a.kind == Pattern::Number && p.args.size() <= params.size() &&
        params[p.args.size() - 1].type == ParamType::Tensor) {
      Pattern full;
      full.kind = Pattern::Call;
      full.op = full_;
      full.args = {a, Pattern{}, Pattern{}};
      a = std::move(full);
    }
    if (!s.starts_with(')')) skip(s, ",");
  }
  skip(s, ")");
  BRASA_ASSERT(p.args.size() == p.op->schema.params.size(), "a rule: ", p.op->name(), " takes ",
               p.op->schema.params.size(), " arguments");
  return p;
}

RuleSet::RuleSet(std::span<const Rule> rules, const OpFinder& find) : full_(find("full")) {
  for (const Rule& rule : rules) {
    std::string_view text = rule.text;
    Pattern left = parse(text, find);
    skip(text, "->");
    Pattern right = parse(text, find);
    BRASA_ASSERT(left.kind == Pattern::Call && text.empty(), "a rule: '", rule.text, "'");
    const Op* root = left.op;
    by_root_[root].push_back({&rule, std::move(left), std::move(right)});
  }
}

RuleSet::~RuleSet() = default;

bool RuleSet::match(const Pattern& p, const Arg& a, Match& m) const {
  switch (p.kind) {
    case Pattern::Anything: return true;
    case Pattern::Number: return equals(a, p.number);
    case Pattern::Name:
      for (const auto& [n, value] : m.bound_)
        if (n == p.name) return value == a;
      m.bound_.emplace_back(p.name, a);
      return true;
    case Pattern::Call: {
      const Value* v = a.get_if<Value>();
      return v && v->node && v->index == 0 && v->node->op == p.op && match_args(p, v->node->args, m);
    }
  }
  return false;
}

bool RuleSet::match_args(const Pattern& p, const Args& args, Match& m) const {
  size_t named = m.bound_.size();
  auto in_order = [&](bool swapped) {
    for (size_t i = 0; i < args.size(); ++i)
      if (!match(p.args[i], args[swapped ? 1 - i : i], m)) {
        m.bound_.resize(named);
        return false;
      }
    return true;
  };
  return in_order(false) || (args.size() == 2 && p.op->commutes() && in_order(true));
}

namespace {

std::unique_ptr<Graph> without_dead(std::unique_ptr<Graph> graph) {
  std::vector<Node*> live = live_nodes(*graph);
  size_t inputs = 0;
  for (Node* n : live) inputs += n->op == input_op();
  if (live.size() - inputs == graph->nodes().size() - graph->inputs().size()) return graph;
  return copy(*graph);
}

}  // namespace

class Rewriter {
 public:
  Rewriter(const Graph& from, const RuleSet& rules)
      : from_(from), rules_(rules), out_(std::make_unique<Graph>(from.level())) {}

  std::unique_ptr<Graph> run(size_t* applied) {
    out_->name = from_.name;
    ValueMap map;
    copy_inputs(*out_, from_, map);
    for (Node* n : live_nodes(from_)) {
      if (n->op == input_op()) continue;
      if (n->types.size() == 1)
        map.set(n->out(), make(n->op, mapped(n->args, map), n->types[0], 0));
      else
        copy_node(*out_, *n, map);
    }
    for (const Output& o : from_.outputs()) out_->outputs().push_back({map(o.value), o.into, o.check});
    if (applied) *applied = applied_;
    return std::move(out_);
  }

 private:
  // The value of a node whose operands are in normal form already, in normal form.
  Value make(const Op* op, Args args, const Type& type, int64_t depth) {
    // A rule may go from a node to its operand, and so through all that the node is made of.
    BRASA_ASSERT(depth < 64 + static_cast<int64_t>(from_.nodes().size()), "rules turn in a circle at ", op->name());
    if (auto it = rules_.by_root_.find(op); it != rules_.by_root_.end())
      for (const RuleSet::Compiled& rule : it->second) {
        Match m;
        m.result_ = &type;
        if (!rules_.match_args(rule.left, args, m) || (rule.rule->where && !rule.rule->where(m))) continue;
        Value v = with_room([&] { return build(rule.right, m, type, depth + 1).get<Value>(); });
        // Of equal elements, but a number of the program or a size spelled another way.
        if (!(type_of(v) == type)) continue;
        ++applied_;
        return v;
      }
    return out_->add(op, std::move(args), {type})->out();
  }

  Arg build(const RuleSet::Pattern& p, const Match& m, const Type& result, int64_t depth) {
    switch (p.kind) {
      case RuleSet::Pattern::Name: return m[p.name];
      case RuleSet::Pattern::Number: return constant(p.number, result, depth);
      case RuleSet::Pattern::Anything: break;
      case RuleSet::Pattern::Call: {
        Args args;
        for (const RuleSet::Pattern& a : p.args) args.push_back(build(a, m, result, depth));
        auto types = p.op->infer(args);
        BRASA_ASSERT(types && types->size() == 1, p.op->name(), " cannot be made by a rule");
        return make(p.op, std::move(args), (*types)[0], depth);
      }
    }
    fail_internal("a rule makes nothing");
  }

  Arg constant(double v, const Type& like, int64_t depth) {
    Arg literal(v);
    if (like.dtype == DType::Bool)
      literal = Arg(v != 0);
    else if (is_integral(like.dtype))
      literal = Arg(static_cast<int64_t>(v));
    Type t = like;
    t.weak = false;
    return make(rules_.full_, {literal, like.shape, like.dtype}, t, depth);
  }

  const Graph& from_;
  const RuleSet& rules_;
  std::unique_ptr<Graph> out_;
  size_t applied_ = 0;
};

std::unique_ptr<Graph> rewrite(const Graph& graph, const RuleSet& rules, size_t* applied) {
  return without_dead(Rewriter(graph, rules).run(applied));
}

}  // namespace brasa::ir
