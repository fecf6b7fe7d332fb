#include <gtest/gtest.h>

#include <brasa/error.h>

#include <complex>
#include <cstring>
#include <random>

#include "compiler/compile.h"
#include "ir/copy.h"
#include "ir/legality.h"
#include "ir/text.h"
#include "ops/complex.h"
#include "ops/interpreter.h"
#include "ops/primitives/interp.h"
#include "transforms/complex.h"

namespace brasa::compiler {
namespace {

using ir::Value;
using ops::Array;
using Build = std::function<std::vector<Value>(const std::vector<Value>&)>;

struct In {
  DType dtype;
  std::vector<int64_t> sizes;
  double low = -2, high = 2;
};

Array numbers(const In& in, std::mt19937& rng) {
  Array a = ops::make_array(in.dtype, in.sizes);
  std::uniform_real_distribution<double> d(in.low, in.high);
  for (int64_t i = 0; i < a.numel(); ++i) ops::set_complex(a, i, {d(rng), d(rng)});
  return a;
}

// Compiled code gives what the interpreter gives on complex numbers as they are.
void check(const std::vector<In>& inputs, const Build& build, bool symbolic, double tolerance) {
  ir::Graph graph(ir::Level::Primitives);
  std::vector<int64_t> hints;
  std::vector<Value> values;
  std::mt19937 rng(11);
  std::vector<Array> arrays;
  for (const In& in : inputs) {
    ir::Shape shape;
    for (int64_t s : in.sizes) {
      shape.push_back(symbolic ? ir::Expr::size(static_cast<uint32_t>(hints.size())) : ir::Expr(s));
      if (symbolic) hints.push_back(s);
    }
    values.push_back(graph.add_input({in.dtype, shape, false}));
    arrays.push_back(numbers(in, rng));
  }
  ir::Facts facts(hints);
  {
    ops::Builder builder(graph, facts);
    for (Value v : build(values)) graph.add_output(v);
  }
  auto sized = ir::with_sizes(graph, [&](ir::Expr e) {
    return ir::Expr(ir::evaluate(e, [&](const ir::ExprNode& s) { return hints.at(s.id); }));
  });
  std::vector<Array> expected = ops::evaluate(*sized, arrays);

  auto split = transforms::split_complex(graph, facts);
  ir::check_legal(*split);
  for (const ir::Node* n : split->nodes())
    for (const ir::Type& t : n->types) ASSERT_FALSE(is_complex(t.dtype)) << ir::print(*n);

  std::shared_ptr<Executable> executable = compile(graph, facts, {});
  std::vector<Operand> operands, outs;
  std::vector<std::vector<int64_t>> strides, out_strides;
  for (const Array& a : arrays) strides.push_back(ops::row_major(a.shape));
  for (size_t i = 0; i < arrays.size(); ++i)
    operands.push_back({arrays[i].data.data(), arrays[i].dtype, arrays[i].shape, strides[i]});
  const std::vector<int64_t>& symbols = hints;
  std::vector<Array> results;
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(executable->output_types()[i].dtype, expected[i].dtype);
    results.push_back(ops::make_array(expected[i].dtype, expected[i].shape));
    out_strides.push_back(ops::row_major(expected[i].shape));
  }
  for (size_t i = 0; i < results.size(); ++i)
    outs.push_back({results[i].data.data(), results[i].dtype, results[i].shape, out_strides[i]});
  executable->run(symbols.data(), operands, outs);
  for (size_t o = 0; o < expected.size(); ++o)
    for (int64_t i = 0; i < expected[o].numel(); ++i) {
      std::complex<double> a = ops::get_complex(results[o], i), b = ops::get_complex(expected[o], i);
      ASSERT_LE(std::abs(a - b), tolerance * (1 + std::abs(b)))
          << "output " << o << " element " << i << " is " << a << ", expected " << b << "\n"
          << ir::print(graph);
    }
}

void check(const std::vector<In>& inputs, const Build& build) {
  for (bool symbolic : {false, true})
    for (DType t : {DType::Complex64, DType::Complex128}) {
      std::vector<In> typed = inputs;
      for (In& in : typed)
        if (is_complex(in.dtype)) in.dtype = t;
      check(typed, build, symbolic, t == DType::Complex64 ? 2e-5 : 1e-12);
    }
}

constexpr DType kC = DType::Complex64;

TEST(Complex, Arithmetic) {
  check({{kC, {3, 5}}, {kC, {3, 5}}}, [](const std::vector<Value>& v) {
    using namespace ops;  // NOLINT
    return std::vector<Value>{v[0] + v[1],
                              v[0] - v[1],
                              v[0] * v[1],
                              v[0] / v[1],
                              -v[0],
                              conj(v[0]),
                              magnitude(v[1]),
                              ops::eq(v[0], v[0]),
                              where(gt(real(v[0]), 0), v[0], v[1])};
  });
}

TEST(Complex, Functions) {
  for (const char* f : {"exp", "exp2", "expm1", "log",  "log2", "log10", "log1p", "sqrt",  "rsqrt", "sin",  "cos",
                        "tan", "sinh", "cosh",  "tanh", "asin", "acos",  "atan",  "asinh", "acosh", "atanh"}) {
    SCOPED_TRACE(f);
    check({{kC, {64}}}, [&](const std::vector<Value>& v) { return std::vector<Value>{ops::prim::unary(f, v[0])}; });
  }
  check({{kC, {32}}, {kC, {32}}},
        [](const std::vector<Value>& v) { return std::vector<Value>{ops::pointwise("pow", v[0], v[1])}; });
}

TEST(Complex, MovementAndSums) {
  check({{kC, {4, 6}}, {kC, {6, 3}}}, [](const std::vector<Value>& v) {
    Value t = ops::prim::transpose(v[0], {1, 0});
    return std::vector<Value>{
        ops::matmul2(v[0], v[1]),       ops::sum(v[0], {1}), ops::sum(v[0], {0}), t, ops::prim::concat({t, v[1]}, 1),
        ops::prim::scan(v[0], 1, "add")};
  });
}

// Inputs of a graph, and what is built of them with the current Builder as its outputs; the inputs' values.
std::vector<Value> add(ir::Graph& graph, const std::vector<In>& inputs, const Build& build) {
  std::vector<Value> values;
  for (const In& in : inputs)
    values.push_back(graph.add_input({in.dtype, ir::Shape(in.sizes.begin(), in.sizes.end()), false}));
  for (Value v : build(values)) graph.add_output(v);
  return values;
}

// Numbers of 64 bits that are only moved are whole: a result has the shape that it had.
TEST(Complex, MovementAlone) {
  auto moved = [](const std::vector<Value>& v) {
    using namespace ops;  // NOLINT
    Value some = prim::full(Number(std::complex<double>(0.5, -1)), {}, dtype_of(v[0]));
    Value t = prim::transpose(v[0], {1, 0}), padded = prim::pad(t, some, {1, 0}, {0, 2}, {0, 1});
    Value rows = prim::gather(v[0], {convert(gt(v[2], 0), DType::Int64)}, {0});
    return std::vector<Value>{
        padded, prim::concat({t, v[1]}, 1), prim::reverse(t, {1}), rows,
        where(gt(v[2], 0), prim::slice(v[0], {0, 0}, {4, 1}, {1, 1}), prim::slice(v[1], {0, 0}, {4, 1}, {1, 1}))};
  };
  const std::vector<In> inputs = {{kC, {4, 6}}, {kC, {6, 3}}, {DType::Float32, {4, 1}}};
  check(inputs, moved);
  ir::Graph graph(ir::Level::Primitives);
  ir::Facts facts;
  ops::Builder builder(graph, facts);
  std::vector<Value> values = add(graph, inputs, moved);
  auto words = transforms::split_complex(graph, facts);
  for (size_t i = 0; i < graph.outputs().size(); ++i)
    EXPECT_EQ(type_of(words->outputs()[i].value).shape, type_of(graph.outputs()[i].value).shape) << i;
  graph.add_output(ops::sum(values[0], {0}));
  EXPECT_EQ(type_of(transforms::split_complex(graph, facts)->outputs()[0].value).rank(), 3);
}

// One real product of operands as they lie in memory, of several columns and many rows; four of others.
TEST(Complex, ProductsOfMatrices) {
  auto products = [](const std::vector<In>& inputs, const Build& build) {
    check(inputs, build);
    ir::Graph graph(ir::Level::Primitives);
    ir::Facts facts;
    ops::Builder builder(graph, facts);
    add(graph, inputs, build);
    auto split = transforms::split_complex(graph, facts);
    return std::count_if(split->nodes().begin(), split->nodes().end(),
                         [](const ir::Node* n) { return n->op->name() == "prim::dot_general"; });
  };
  auto batched = [](Value a, Value b, int64_t from_a, int64_t from_b) {
    return std::vector<Value>{ops::prim::dot_general(a, b, {from_a}, {from_b}, {0}, {0})};
  };
  auto product = [&](const std::vector<Value>& v) { return batched(v[0], v[1], 2, 1); };
  EXPECT_EQ(products({{kC, {3, 20, 7}}, {kC, {3, 7, 5}}}, product), 1);
  EXPECT_EQ(products({{kC, {2, 3, 4}}, {kC, {2, 4, 9}}}, product), 1);
  EXPECT_EQ(products({{kC, {2, 3, 80}}, {kC, {2, 80, 90}}}, product), 4);  // few rows
  EXPECT_EQ(products({{kC, {2, 30, 4}}, {kC, {2, 4, 1}}}, product), 4);    // one column
  EXPECT_EQ(products({{kC, {2, 7, 20}}, {kC, {2, 5, 7}}},
                     [&](const std::vector<Value>& v) { return batched(v[0], v[1], 1, 2); }),
            1);
  EXPECT_EQ(products({{kC, {2, 20, 7}}, {kC, {2, 7, 5}}},
                     [&](const std::vector<Value>& v) { return batched(v[0], ops::conj(v[1]), 2, 1); }),
            4);
}

TEST(Complex, ConstantsAndConversions) {
  check({{kC, {5}}, {DType::Float32, {5}}}, [](const std::vector<Value>& v) {
    Value i = ops::constant_like(v[0], ops::Number(std::complex<double>(0.5, -1)));
    return std::vector<Value>{ops::operator*(v[0], i), ops::prim::convert(v[1], ops::dtype_of(v[0])),
                              ops::prim::convert(v[0], DType::Float32), ops::prim::convert(v[0], DType::Bool)};
  });
}

TEST(Complex, WhatHasNoFormulaIsNamed) {
  ir::Graph graph(ir::Level::Primitives);
  ir::Facts facts;
  {
    ops::Builder builder(graph, facts);
    ir::Value z = graph.add_input({kC, {4}, false});
    graph.add_output(ops::prim::binary("lt", z, z));
  }
  try {
    transforms::split_complex(graph, facts);
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("prim::lt"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace brasa::compiler
