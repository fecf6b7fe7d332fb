#include "compiler/passes/simplify.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <random>

#include <brasa/error.h>

#include "ir/legality.h"
#include "ops/algebra.h"
#include "ops/interpreter.h"
#include "ops/primitives/interp.h"

namespace brasa::compiler {
namespace {

using ir::Arg;
using ir::Expr;
using ir::Value;
using ops::Array;
using Dims = std::vector<int64_t>;

const ir::Op* find(std::string_view name) { return ops::find(str("prim::", name)); }

constexpr DType kReal[] = {DType::Float32, DType::Float64, DType::Float16, DType::BFloat16, DType::Bool,
                           DType::UInt8,   DType::Int8,    DType::Int16,   DType::Int32,    DType::Int64};

// Makes graphs that a rule's left side matches, as far as chance wills.
class Instance {
 public:
  explicit Instance(uint32_t seed) : rng_(seed), graph(ir::Level::Primitives) {
    dtype_ = kReal[below(std::size(kReal))];
    for (int64_t i = below(4); i > 0; --i) shape_.push_back(below(4));
  }

  void build(std::string_view rule) {
    ops::Builder builder(graph, facts_);
    std::string_view text = rule;
    graph.add_output(operand(text, dtype_, shape_));
  }

 private:
  int64_t below(size_t n) { return static_cast<int64_t>(rng_() % n); }
  bool coin() { return rng_() & 1; }

  Array values(DType t, const Dims& shape) {
    static constexpr double kSpecial[] = {0.0, -0.0, 1, -1, 2.5, INFINITY, -INFINITY, NAN, 1e30, 1e-40, -3.75, 65504};
    static constexpr int64_t kWhole[] = {0,
                                         1,
                                         -1,
                                         2,
                                         7,
                                         127,
                                         -128,
                                         255,
                                         65536,
                                         std::numeric_limits<int64_t>::min(),
                                         std::numeric_limits<int64_t>::max()};
    Array a = ops::make_array(t, shape);
    for (int64_t i = 0; i < a.numel(); ++i) {
      if (ops::by_int(t))
        ops::set_int(a, i, coin() ? kWhole[below(std::size(kWhole))] : below(200) - 100);
      else
        ops::set(a, i, coin() ? kSpecial[below(std::size(kSpecial))] : std::normal_distribution<double>(0, 3)(rng_));
    }
    return a;
  }

  static void skip_spaces(std::string_view& s) {
    while (s.starts_with(' ') || s.starts_with(',')) s.remove_prefix(1);
  }
  static std::string_view word(std::string_view& s) {
    skip_spaces(s);
    size_t n = 0;
    while (n < s.size() && (std::isalnum(static_cast<unsigned char>(s[n])) || s[n] == '_' || s[n] == '-')) ++n;
    std::string_view w = s.substr(0, n);
    s.remove_prefix(n);
    return w;
  }

  Value input(DType t, const Dims& shape) {
    inputs.push_back(values(t, shape));
    return graph.add_input({t, ir::Shape(shape.begin(), shape.end()), false});
  }

  Value operand(std::string_view& s, DType t, const Dims& shape) {
    std::string_view name = word(s);
    if (s.starts_with('(')) {
      s.remove_prefix(1);
      Value v = call(name, s, t, shape);
      skip_spaces(s);
      s.remove_prefix(1);
      return v;
    }
    if (name[0] == '-' || std::isdigit(static_cast<unsigned char>(name[0])))
      return ops::prim::full(ops::Number(std::stod(std::string(name))), ir::Shape(shape.begin(), shape.end()), t);
    auto it = bound_.find(name);
    if (it == bound_.end()) it = bound_.emplace(name, Arg(input(t, shape))).first;
    return it->second.get<Value>();
  }

  Value call(std::string_view name, std::string_view& s, DType t, const Dims& shape) {
    const ops::Row& row = ops::at(str("prim::", name));
    ir::Args args;
    for (const ir::Param& p : row.schema.params) {
      size_t i = args.size();
      if (p.type == ir::ParamType::Tensor && !p.list) {
        bool condition = name == "select" && i == 0, scalar = name == "pad" && i == 1;
        args.push_back(operand(s, condition ? DType::Bool : t, scalar ? Dims{} : shape));
        continue;
      }
      std::string_view a = word(s);
      auto it = bound_.find(a);
      if (it == bound_.end()) it = bound_.emplace(a, attribute(name, i, args, t, shape)).first;
      args.push_back(it->second);
    }
    return ops::Builder::current().record(row, std::move(args))[0];
  }

  Dims shape_of(const ir::Args& args) {
    Dims out;
    for (Expr e : ir::type_of(args[0].get<Value>()).shape) out.push_back(e.constant());
    return out;
  }

  Dims subset(int64_t rank) {
    Dims out;
    for (int64_t d = 0; d < rank; ++d)
      if (coin()) out.push_back(d);
    return out;
  }

  Arg attribute(std::string_view op, size_t i, const ir::Args& args, DType t, const Dims& shape) {
    if (op == "full") {
      if (i == 1) return ops::int_arg(shape);
      if (i == 2) return Arg(t);
      Array a = values(t, {1});
      if (is_floating(t)) return Arg(ops::get(a, 0));
      return t == DType::Bool ? Arg(ops::get_int(a, 0) != 0) : Arg(ops::get_int(a, 0));
    }
    if (op == "convert" || op == "bitcast") return Arg(coin() ? t : kReal[below(std::size(kReal))]);
    if (op == "concat") {
      if (i == 1) return Arg(0);
      std::vector<Value> list = {input(t, {2, 3})};
      if (coin()) list.push_back(input(t, {3, 3}));
      return Arg(std::move(list));
    }
    Dims from = shape_of(args);
    auto rank = static_cast<int64_t>(from.size());
    bool identity = coin();
    if (op == "transpose") {
      Dims p(from.size());
      for (int64_t d = 0; d < rank; ++d) p[d] = d;
      if (!identity) std::shuffle(p.begin(), p.end(), rng_);
      return ops::int_arg(p);
    }
    if (op == "reverse") return ops::int_arg(identity ? Dims{} : subset(rank));
    if (op == "reduce") {
      static constexpr const char* kCombiners[] = {"add", "mul", "max", "min", "and", "or"};
      if (i == 2) return Arg(kCombiners[below(ops::by_int(t) ? 6 : 4)]);
      return ops::int_arg(identity ? Dims{} : subset(rank));
    }
    if (op == "reshape") {
      if (identity) return ops::int_arg(from);
      int64_t n = 1;
      for (int64_t s : from) n *= s;
      Dims out;
      for (int64_t f : {2, 3})
        if (coin() && n % f == 0) {
          out.push_back(f);
          n /= f;
        }
      out.push_back(n);
      if (coin()) out.insert(out.begin(), 1);
      return ops::int_arg(out);
    }
    if (op == "broadcast") {
      if (i == 1) {
        targets_.clear();
        Dims to;
        for (int64_t d = 0; d < rank; ++d) {
          if (!identity && below(3) == 0) to.push_back(below(3) + 1);
          targets_.push_back(static_cast<int64_t>(to.size()));
          to.push_back(from[d] == 1 && !identity ? below(4) : from[d]);
        }
        return ops::int_arg(to);
      }
      return ops::int_arg(targets_);
    }
    if (op == "slice") {
      // start, size and step are made together
      if (i == 1) {
        sizes_.clear();
        steps_.clear();
        Dims starts;
        for (int64_t n : from) {
          int64_t start = identity || n == 0 ? 0 : below(n), step = identity ? 1 : below(3) + 1;
          starts.push_back(start);
          steps_.push_back(step);
          sizes_.push_back(identity || n == 0 ? n : (n - start + step - 1) / step);
        }
        return ops::int_arg(starts);
      }
      return ops::int_arg(i == 2 ? sizes_ : steps_);
    }
    if (op == "pad") {
      Dims out;
      for (int64_t d = 0; d < rank; ++d) out.push_back(i == 4 || coin() ? 0 : below(3));
      if (i == 2 && coin()) zero_pad_ = true;
      if (zero_pad_) out.assign(from.size(), 0);
      // There may be room for a second one behind or before the first.
      if (i < 4 && rank > 0) {
        Dims& before = i == 2 ? low_ : high_;
        if (i == 2) beside_ = before.size() == from.size() && coin() ? 1 : 0;
        if (i == 2 && beside_ == 1 && high_[0] < from[0]) beside_ = low_[0] >= from[0] ? -1 : 0;
        if (before.empty()) out[0] += coin() ? from[0] : 0;
        if (beside_) {
          out = before;
          out[0] += (i == 2 ? beside_ : -beside_) * from[0];
        }
        before = out;
      }
      return ops::int_arg(out);
    }
    if (op == "window") {
      if (from.empty() || from[0] < 2) throw std::out_of_range("a window does not fit");
      if (i == 1) return Arg(0);
      return Arg(i == 2 ? Expr(1 + below(2)) : Expr(1));
    }
    ADD_FAILURE() << "no attributes for " << op;
    return Arg();
  }

  std::mt19937 rng_;
  DType dtype_;
  Dims shape_, targets_, sizes_, steps_;
  Dims low_, high_;  // of the pad before
  bool zero_pad_ = false;
  int beside_ = 0;  // the next one lies behind it, or before
  ir::Facts facts_;
  std::map<std::string_view, Arg> bound_;

 public:
  ir::Graph graph;
  std::vector<Array> inputs;
};

void expect_equal(const Array& a, const Array& b) {
  ASSERT_EQ(a.dtype, b.dtype);
  ASSERT_EQ(a.shape, b.shape);
  for (int64_t i = 0; i < a.numel(); ++i) {
    if (ops::by_int(a.dtype)) {
      ASSERT_EQ(ops::get_int(a, i), ops::get_int(b, i));
    } else {
      double x = ops::get(a, i), y = ops::get(b, i);
      ASSERT_TRUE((std::isnan(x) && std::isnan(y)) || (x == y && std::signbit(x) == std::signbit(y)))
          << "element " << i << " of " << name(a.dtype) << " is " << y << ", expected " << x;
    }
  }
}

class Rules : public testing::TestWithParam<size_t> {};

TEST_P(Rules, HoldToTheBit) {
  const ir::Rule& rule = simplifications()[GetParam()];
  SCOPED_TRACE(rule.text);
  ir::RuleSet one({&rule, 1}, find);
  size_t matched = 0;
  std::string last;
  for (uint32_t seed = 0; seed < 300 && matched < 60; ++seed) {
    Instance instance(seed * 7919 + 1);
    std::vector<Array> expected;
    try {
      instance.build(rule.text);
      expected = ops::evaluate(instance.graph, instance.inputs);
    } catch (const std::exception& e) {
      last = e.what();
      continue;  // not defined for this dtype or shape
    }
    SCOPED_TRACE(str("seed ", seed, "\n", ir::print(instance.graph)));
    size_t applied = 0;
    auto rewritten = ir::rewrite(instance.graph, one, &applied);
    if (applied == 0) continue;
    ++matched;
    ir::check_legal(*rewritten);
    SCOPED_TRACE(ir::print(*rewritten));
    ASSERT_EQ(ir::type_of(rewritten->outputs()[0].value), ir::type_of(instance.graph.outputs()[0].value));
    expect_equal(expected[0], ops::evaluate(*rewritten, instance.inputs)[0]);
    auto simple = simplify(instance.graph);
    ir::check_legal(*simple);
    expect_equal(expected[0], ops::evaluate(*simple, instance.inputs)[0]);
    EXPECT_EQ(ir::print(*simplify(*simple)), ir::print(*simple));
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GE(matched, 5u) << "the rule hardly ever matches; the last that was no graph: " << last;
}

INSTANTIATE_TEST_SUITE_P(Table, Rules, testing::Range<size_t>(0, simplifications().size()));

TEST(Simplify, KeepsOutputsInPlace) {
  ir::Graph g(ir::Level::Primitives);
  ir::Facts facts;
  {
    ops::Builder builder(g, facts);
    Value x = g.add_input({DType::Float32, {2, 3}, false}, "x");
    Value y = ops::prim::unary("neg", ops::prim::unary("neg", ops::operator*(x, 1)));
    g.add_output(y, 0);
    g.add_output(ops::prim::transpose(ops::prim::transpose(ops::operator+(x, y), {1, 0}), {1, 0}));
    g.add_check(ops::prim::full(true, {}, DType::Bool), "holds");
  }
  EXPECT_EQ(ir::print(*simplify(g)),
            "graph primitives \"\" {\n"
            "  %0 = input: f32[2, 3] \"x\"\n"
            "  %1 = prim::add(%0, %0): f32[2, 3]\n"
            "  %2 = prim::full(value=true, size=[], dtype=bool): bool[]\n"
            "  return %0 -> 0, %1, %2 else \"holds\"\n"
            "}\n");
}

// Gradients of all parts of a tensor, whatever their order, are joined: one concatenation, and no sum of padded tensors.
TEST(Simplify, SumOfPartsSideBySide) {
  for (bool backwards : {false, true}) {
    ir::Graph g(ir::Level::Primitives);
    ir::Facts facts;
    {
      ops::Builder builder(g, facts);
      Value zero = ops::prim::full(0, {}, DType::Float32), sum;
      for (int64_t i = 0; i < 3; ++i) {
        int64_t at = backwards ? 2 - i : i;
        Value part = g.add_input({DType::Float32, {2, 4}, false});
        part = ops::prim::pad(part, zero, {2 * at, 0}, {4 - 2 * at, 0}, {0, 0});
        sum = sum ? ops::prim::binary("add", sum, part) : part;
      }
      g.add_output(sum);
    }
    std::string text = ir::print(*simplify(g));
    auto count = [&](const std::string& op) {
      size_t n = 0;
      for (size_t at = text.find(op); at != text.npos; at = text.find(op, at + 1)) ++n;
      return n;
    };
    EXPECT_EQ(count("prim::pad"), 0) << text;
    EXPECT_EQ(count("prim::concat"), 1) << text;
    EXPECT_EQ(count("prim::add"), 1) << text;  // with 0
  }
}

// Rows that are written one after the other, and read in between: nothing waits for the whole.
TEST(Simplify, PartsOfWhatIsWrittenInParts) {
  ir::Graph g(ir::Level::Primitives);
  ir::Facts facts;
  {
    ops::Builder builder(g, facts);
    Value x = g.add_input({DType::Float32, {3, 4}, false}, "x"), zero = ops::prim::full(0, {}, DType::Float32),
          no = ops::prim::full(false, {}, DType::Bool);
    auto row = [](Value v, int64_t i) { return ops::prim::slice(v, {i, 0}, {1, 4}, {1, 1}); };
    auto put = [&](Value into, Value v, int64_t i) {
      auto placed = [&](Value part, Value rest) { return ops::prim::pad(part, rest, {i, 0}, {2 - i, 0}, {0, 0}); };
      Value mask = placed(ops::prim::full(true, {1, 4}, DType::Bool), no);
      return ops::prim::select(mask, placed(v, zero), into);
    };
    Value first = ops::prim::unary("neg", row(x, 0)), once = put(x, first, 0);
    Value second = ops::prim::unary("exp", row(once, 1)), twice = put(once, second, 1);
    for (int64_t i = 0; i < 3; ++i) g.add_output(row(twice, i));
    g.add_output(ops::prim::slice(twice, {0, 1}, {2, 2}, {1, 1}));
  }
  ops::Array x = ops::make_array(DType::Float32, {3, 4});
  for (int64_t i = 0; i < x.numel(); ++i) ops::set(x, i, static_cast<double>(i) / 8);
  auto simple = simplify(g);
  std::vector<Array> expected = ops::evaluate(g, std::vector<Array>{x}),
                     found = ops::evaluate(*simple, std::vector<Array>{x});
  for (size_t i = 0; i < expected.size(); ++i) expect_equal(expected[i], found[i]);
  auto from = [&](size_t i) { return ops::row_of(*simple->outputs()[i].value.node).name(); };
  EXPECT_EQ(from(0), "prim::neg");
  EXPECT_EQ(from(1), "prim::exp");
  EXPECT_EQ(simple->outputs()[2].value.node->inputs()[0], simple->inputs()[0].value);
}

}  // namespace
}  // namespace brasa::compiler
