#include <gtest/gtest.h>

#include <random>

#include "compiler/compile.h"
#include "ops/algebra.h"
#include "ops/primitives/interp.h"
#include "support/str.h"

// Where numbers are strict, sums have one order: for all vectors and numbers of threads, known sizes and symbols, rows and columns, and
// whatever the same kernel computes.
namespace brasa::compiler {
namespace {

using ir::Expr;
using ir::Value;
using ops::operator*;
using ops::operator-;
using ops::operator/;
namespace prim = ops::prim;
using Values = std::vector<Value>;
using Sizes = std::vector<int64_t>;

struct How {
  const char* target;  // that schedules are made for
  int threads;
  bool symbolic, eager, turned;  // turned: the first dimension runs fastest in memory
};
void append_to(std::string& out, const How& h) {
  out += str(h.target, ", ", h.threads, " threads", h.symbolic ? ", symbols" : "", h.eager ? ", eager" : "",
             h.turned ? ", turned" : "");
}

// The first result.
ops::Array first_of(const std::function<Values(Value x)>& build, const Sizes& sizes, const How& how) {
  size_t rank = sizes.size();
  Sizes strides = ops::row_major(sizes), hints;
  if (how.turned) {
    strides = ops::row_major(Sizes(sizes.rbegin(), sizes.rend()));
    std::reverse(strides.begin(), strides.end());
  }
  auto number = [&](int64_t n) {
    if (!how.symbolic) return Expr(n);
    hints.push_back(n);
    return Expr::size(static_cast<uint32_t>(hints.size()) - 1);
  };
  ir::Shape shape;
  std::vector<Expr> steps;
  for (int64_t s : sizes) shape.push_back(number(s));
  for (size_t d = 0; d < rank && how.turned; ++d) steps.push_back(number(strides[d]));
  ir::Graph graph(ir::Level::Primitives);
  Value x = graph.add_input({DType::Float32, shape, false}, "", steps);
  ir::Facts facts(hints);
  {
    ops::Builder builder(graph, facts);
    for (Value v : build(x)) graph.add_output(v);
  }
  CompilerOptions options;
  options.numbers = Numbers::Strict;
  options.target = how.target;
  options.threads = how.threads;
  options.size_classes = how.eager;
  std::shared_ptr<Executable> executable = compile(graph, facts, options);
  // The same element at the same index, wherever it lies.
  ops::Array data = ops::make_array(DType::Float32, sizes);
  std::mt19937 pick(5);
  std::uniform_real_distribution<double> spread(-1, 2);
  Sizes at(rank);
  do {
    int64_t place = 0;
    for (size_t d = 0; d < rank; ++d) place += at[d] * strides[d];
    ops::set(data, place, spread(pick));
  } while (ops::next_index(at, sizes));
  std::vector<ops::Array> results;
  std::vector<Sizes> dense;
  for (const ir::Type& t : executable->output_types()) {
    Sizes s;
    for (Expr e : t.shape) s.push_back(Executable::evaluate(e, hints.data()));
    results.push_back(ops::make_array(t.dtype, s));
    dense.push_back(ops::row_major(s));
  }
  std::vector<Operand> in = {{data.data.data(), DType::Float32, sizes, strides}}, out;
  for (size_t i = 0; i < results.size(); ++i)
    out.push_back({results[i].data.data(), results[i].dtype, results[i].shape, dense[i]});
  executable->run(hints.data(), in, out);
  ops::Array first = results[0];
  executable->optimize(true);
  executable->run(hints.data(), in, out);
  EXPECT_EQ(first.data, results[0].data) << "optimized code";
  return results[0];
}

// In all ways the same bits, which are those of `others`, too: graphs that compute more.
void expect_one_order(const Sizes& sizes, const std::vector<std::function<Values(Value x)>>& builds) {
  const ops::Array want = first_of(builds[0], sizes, {"x86-64+avx512", 1, false, false, false});
  int ways = 0;
  for (const char* target : {"x86-64", "x86-64+avx2", "x86-64+avx512"})
    for (const auto& build : builds) {
      How how{target, ways % 3 == 0 ? 16 : ways % 3, ways % 2 == 0, ways % 4 == 0, ways % 5 < 2};
      how.threads = std::max(how.threads, 1);
      ++ways;
      SCOPED_TRACE(str(how, ", sizes ", sizes));
      EXPECT_EQ(first_of(build, sizes, how).data, want.data);
    }
}

// Alone, with other sums of the same operand, with what makes vectors shorter, and with what reads the sum.
void expect_one_order_of(const Sizes& sizes, const std::vector<int64_t>& dims, const char* combiner) {
  auto sum = [=](Value x) { return prim::reduce(x, dims, combiner); };
  expect_one_order(
      sizes, {[=](Value x) { return Values{sum(x)}; },
              [=](Value x) { return Values{sum(x), prim::reduce(prim::unary("exp", x), dims, "add")}; },
              [=](Value x) { return Values{sum(x), prim::reduce(prim::convert(x, DType::Float64), dims, "add")}; },
              [=](Value x) { return Values{sum(x), x / ops::keep_dims(sum(x), ops::shape_of(x), dims)}; },
              [=](Value x) { return Values{sum(x), prim::unary("tanh", sum(x))}; },
              [=](Value x) {
                Values out = {sum(x)};
                for (int64_t d = 0; d < ops::rank_of(x); ++d) out.push_back(prim::arg_reduce(x, d, "max"));
                return out;
              }});
}

TEST(Order, OfSums) {
  for (int64_t n : {2, 7, 16, 17, 100, 1000, 8193, 20000}) {
    expect_one_order_of({3, n}, {1}, "add");
    expect_one_order_of({n, 3}, {0}, "add");
    expect_one_order_of({n}, {0}, "add");
  }
  for (int64_t n : {5, 40}) {
    expect_one_order_of({2, n, 70}, {1}, "mul");
    expect_one_order_of({n, 6, 19}, {0, 2}, "add");
    expect_one_order_of({n, 3, 21}, {0, 1, 2}, "add");
    expect_one_order_of({4, n, 21}, {1, 2}, "add");
  }
  expect_one_order_of({40, 50, 60}, {0, 1, 2}, "add");
}

TEST(Order, OfProducts) {
  auto product = [](Value a, Value b, std::vector<int64_t> da, std::vector<int64_t> db) {
    return prim::dot_general(a, b, std::move(da), std::move(db), {}, {});
  };
  for (int64_t k : {2, 19, 130})
    for (int64_t m : {1, 2, 5, 50}) {
      // By itself, of operands that are computed, and of exchanged ones.
      expect_one_order({m, k}, {[=](Value x) { return Values{product(x, prim::unary("sin", x), {1}, {1})}; },
                                [=](Value x) { return Values{product(x * 1, prim::unary("sin", x), {1}, {1})}; },
                                [=](Value x) {
                                  Value y = prim::transpose(prim::unary("sin", x), {1, 0});
                                  return Values{product(x, y, {1}, {0}), x - 1};
                                },
                                [=](Value x) {
                                  Value y = product(prim::unary("sin", x), x, {1}, {1});
                                  return Values{prim::transpose(y, {1, 0}), x * x};
                                }});
      // Of several dimensions.
      expect_one_order({m, k, 3}, {[=](Value x) { return Values{product(x, prim::unary("cos", x), {1, 2}, {1, 2})}; },
                                   [=](Value x) {
                                     Value y = prim::transpose(prim::unary("cos", x), {2, 0, 1});
                                     return Values{product(x, y, {1, 2}, {2, 0})};
                                   }});
    }
}

}  // namespace
}  // namespace brasa::compiler
