#include "ir/text.h"

#include <brasa/error.h>
#include <gtest/gtest.h>

#include <limits>

#include "ir/schema.h"

namespace brasa::ir {
namespace {

struct TestOp : Op {
  explicit TestOp(std::string_view s) { schema = parse_schema(s); }
};

const Op* find(std::string_view name) {
  static const TestOp gelu("aten::gelu(Tensor self, *, str approximate='none') -> Tensor");
  static const TestOp cat("aten::cat(Tensor[] tensors, int dim=0) -> Tensor");
  static const TestOp max("aten::max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)");
  static const TestOp full("prim::full(Scalar value, SymInt[] size, ScalarType dtype) -> Tensor");
  for (const TestOp* op : {&gelu, &cat, &max, &full})
    if (op->name() == name) return op;
  return nullptr;
}

TEST(Schema, ReadsWhatPyTorchWrites) {
  Schema s = parse_schema(
      "aten::conv2d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=1, SymInt[2] padding=0, SymInt "
      "groups=1) -> Tensor");
  EXPECT_EQ(s.base, "conv2d");
  EXPECT_EQ(s.params[3].default_value->get<std::vector<Expr>>().size(), 2u);
  EXPECT_TRUE(s.params[2].optional);
  EXPECT_EQ(
      str(s),
      "aten::conv2d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=[1, 1], SymInt[2] padding=[0, "
      "0], SymInt groups=1) -> Tensor");
  Schema in_place = parse_schema("aten::relu_(Tensor(a!) self) -> Tensor(a!)");
  EXPECT_TRUE(in_place.params[0].mutated);
  EXPECT_EQ(parse_schema("aten::__and__.Tensor(Tensor self, Tensor other) -> Tensor").overload, "Tensor");
}

TEST(Schema, AListOfDefaultsEnds) {
  for (const char* text : {"aten::f(Device[] d=[) -> ()", "aten::f(int[2] d=[1, ) -> ()", "aten::f(Layout l=) -> ()"})
    EXPECT_THROW(parse_schema(text), Error) << text;
}

TEST(Text, PrintedGraphReadsBack) {
  Graph g;
  g.name = "a \"b\"";
  Expr s = Expr::size(0, 2, 8);
  Value x = g.add_input({DType::Float32, {s, Expr(4)}, false}, "x", {Expr(4), Expr(1)});
  Value w = g.add_input({DType::Float64, {}, true}, "w");
  Node* m = g.add(find("aten::max.dim"), {x, 1, true},
                  {{DType::Float32, {s, Expr(1)}, false}, {DType::Int64, {s, Expr(1)}, false}});
  Node* c = g.add(find("aten::cat"), {std::vector<Value>{x, m->out()}, 1}, {{DType::Float32, {s, Expr(5)}, false}});
  Node* f = g.add(find("prim::full"), {-0.0, Shape{floordiv(s * 3, 2)}, DType::BFloat16},
                  {{DType::BFloat16, {floordiv(s * 3, 2)}, false}});
  Node* y = g.add(find("aten::gelu"), {c->out(), "tanh"}, {{DType::Float32, {s, Expr(5)}, false}});
  g.add_output(y->out());
  g.add_output(m->out(1), 0);
  g.add_output(f->out());
  g.add_check(w, "w must hold");
  std::string text = print(g);
  EXPECT_NE(text.find("%5 = aten::gelu(%3, approximate=\"tanh\"): f32[s0, 5]"), text.npos) << text;
  EXPECT_EQ(print(*parse(text, find)), text);
}

TEST(Text, LoopIndicesKeepTheirExtents) {
  Graph g(Level::Loops);
  Expr i = Expr::range(0, Expr::size(0) * 2), j = Expr::range(1, Expr(16));
  Node* n = g.add(find("prim::full"), {1.0, Shape{i * 16 + j, i}, DType::Float32}, {{DType::Float32, {}, false}});
  g.add_output(n->out());
  std::string text = print(g);
  EXPECT_NE(text.find("r0<s0*2>*16 + r1<16>"), text.npos) << text;
  EXPECT_EQ(print(*parse(text, find)), text);
}

// Kernels that differ in the ids of their sizes alone are one.
TEST(Text, LoopsNumberTheirSizes) {
  auto text = [](uint32_t first, uint32_t second) {
    Graph g(Level::Loops);
    Expr i = Expr::range(0, Expr::size(first, 1)), j = Expr::range(1, Expr::size(second, 0, 8));
    Node* n = g.add(find("prim::full"), {1.0, Shape{i, j}, DType::Float32}, {{DType::Float32, {}, false}});
    g.add_output(n->out());
    return print(g);
  };
  EXPECT_EQ(text(2, 7), text(0, 1));
  EXPECT_NE(text(2, 7).find("symbols s0>=1, s1>=0/8"), std::string::npos) << text(2, 7);
  EXPECT_NE(text(7, 2), text(0, 1));
}

TEST(Text, SizesMayBeNegative) {
  Graph g(Level::Loops);
  Expr i = Expr::range(0, Expr::size(0, -5)), j = Expr::range(1, Expr::size(1, std::numeric_limits<int64_t>::min()));
  Node* n = g.add(find("prim::full"), {1.0, Shape{i, j}, DType::Float32}, {{DType::Float32, {}, false}});
  g.add_output(n->out());
  EXPECT_EQ(print(*parse(print(g), find)), print(g));
}

TEST(Text, MalformedTextIsAnError) {
  std::string good =
      "graph operators \"\" {\n  %0 = input: f32[2] \"x\"\n  %1 = aten::gelu(%0): f32[2]\n  return %1\n}\n";
  EXPECT_NO_THROW(parse(good, find));
  for (size_t cut = 0; cut + 2 < good.size(); ++cut) EXPECT_THROW(parse(good.substr(0, cut), find), Error) << cut;
  auto with = [&](std::string from, std::string to) {
    return std::string(good).replace(good.find(from), from.size(), to);
  };
  EXPECT_THROW(parse(with("%0)", "%7)"), find), Error);
  EXPECT_THROW(parse(with("gelu", "nope"), find), Error);
  EXPECT_THROW(parse(with("f32[2] \"x\"", "f31[2] \"x\""), find), Error);
  EXPECT_THROW(parse(with("return %1", "return %1 -> 4"), find), Error);
  EXPECT_THROW(parse(with("f32[2]", "f32[s3]"), find), Error);
  EXPECT_THROW(parse(with("f32[2]", "f32[" + std::string(100000, '(') + "]"), find), Error);
}

TEST(Graph, EqualNodesAreOne) {
  Graph g;
  Value x = g.add_input({DType::Float32, {2}, false});
  Value y = g.add_input({DType::Float32, {2}, false});
  EXPECT_FALSE(x == y);
  Type t{DType::Float32, {2}, false};
  EXPECT_EQ(g.add(find("aten::gelu"), {x, "none"}, {t}), g.add(find("aten::gelu"), {x, "none"}, {t}));
  EXPECT_NE(g.add(find("aten::gelu"), {x, "none"}, {t}), g.add(find("aten::gelu"), {x, "tanh"}, {t}));
}

// Expressions share parts, and so does their text.
TEST(Text, LongExpressionsHaveNames) {
  Graph g;
  Expr s = Expr::size(0);
  for (int i = 0; i < 40; ++i) s = max(min(Expr(1), s), max(Expr(0), s - 1)) - min(Expr(1), s);
  Expr r = Expr::range(0, s), inner = Expr::range(1, r + 1);
  g.add_input({DType::Float32, {s, s * 2 + r, inner}}, "x");
  std::vector<Fact> facts = {{s, Expr(3), true}, {s + 1, Expr(7), false}}, again;
  std::string text = print(g, facts);
  EXPECT_LT(text.size(), 40000u);
  EXPECT_NE(text.find("let [e0 = "), text.npos);
  std::unique_ptr<Graph> read = parse(text, find, &again);
  EXPECT_EQ(type_of(read->inputs()[0].value), type_of(g.inputs()[0].value));
  EXPECT_EQ(again, facts);
  EXPECT_EQ(print(*read, again), text);
}

}  // namespace
}  // namespace brasa::ir
