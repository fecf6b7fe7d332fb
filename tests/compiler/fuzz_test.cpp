#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "check.h"
#include "support/str.h"

// Random small graphs against the interpreter: what fusion joins, and where the plan puts it, must not change a result. All sizes
// of a graph are equal, so that an index which goes along the wrong dimension is not caught by a shape.
namespace brasa::compiler {
namespace {

using namespace testing;
using ir::Value;
using ops::operator+;
using ops::operator-;
using ops::operator*;
using Values = std::vector<Value>;
namespace prim = ops::prim;

class RandomGraph {
 public:
  explicit RandomGraph(uint32_t seed) : rng_(seed) {}

  int pick(int n) { return static_cast<int>(rng_() % static_cast<uint32_t>(n)); }

  std::vector<In> inputs() {
    constexpr int64_t kSizes[] = {1, 2, 3, 5, 8, 17};
    int64_t n = kSizes[pick(6)];
    std::vector<In> in;
    for (int i = 0, count = 2 + pick(2); i < count; ++i) {
      In x{DType::Float32, std::vector<int64_t>(i == 0 ? 2 : 1 + pick(2), n)};
      if (x.sizes.size() == 2 && pick(4) == 0) x.strides = {1, n};
      in.push_back(x);
    }
    return in;
  }

  Values build(const Values& inputs) {
    Values pool = inputs;
    for (int steps = 3 + pick(9); steps > 0; --steps) pool.push_back(step(pool));
    return pool;
  }

 private:
  // Bounded, so that differences do not grow.
  Value step(const Values& pool) {
    Value x = some(pool);
    int64_t rank = ops::rank_of(x);
    switch (pick(rank == 2 ? 12 : 6)) {
      case 0: return prim::unary("tanh", x);
      case 1: return prim::unary("exp", prim::unary("neg", prim::unary("abs", x)));
      case 2:
      case 3:
      case 4: return both(x, some(pool));
      case 5: return rank == 0 ? prim::unary("tanh", x) : prim::reverse(x, {pick(static_cast<int>(rank))});
      case 6: return prim::transpose(x, {1, 0});
      case 7: return prim::reduce(x, {pick(2)}, "max");
      case 8: return joined(x, some(pool), pick(2));
      case 9: {
        int64_t dim = pick(2);
        return ops::slice(ops::pad_dim(x, dim, 1, 0, 0.5), dim, 0, ops::size_of(x, dim), 1);
      }
      case 10: return normalised(x, pick(2));
      default: {
        int64_t dim = pick(2);
        return prim::unary("tanh", prim::reduce(x, {dim}, "add"));
      }
    }
  }

  // Three passes over each row.
  Value normalised(Value x, int64_t dim) {
    Value rest = x - ops::amax(x, {dim}, true);
    return rest * prim::unary("rsqrt", ops::sum(rest * rest, {dim}, true) + 1);
  }

  // The first element along a dimension of one value, what comes behind it of another.
  Value joined(Value a, Value b, int64_t dim) {
    if (ops::rank_of(b) < 2) b = a;
    ir::Expr n = ops::size_of(a, dim);
    return prim::concat({ops::slice(a, dim, 0, 1, 1), ops::slice(b, dim, 1, n, 1)}, dim);
  }

  Value some(const Values& pool) {
    // New values more often, so that chains grow.
    int n = static_cast<int>(pool.size());
    return pool[std::max(pick(n), pick(n))];
  }

  // Of the larger rank; a vector goes along the rows or the columns.
  Value both(Value a, Value b) {
    if (ops::rank_of(a) < ops::rank_of(b)) std::swap(a, b);
    if (ops::rank_of(b) < ops::rank_of(a)) b = prim::broadcast(b, ops::shape_of(a), {pick(2)});
    switch (pick(3)) {
      case 0: return prim::unary("tanh", prim::binary("add", a, b));
      case 1: return prim::binary("max", a, b);
      default: return prim::unary("tanh", prim::binary("mul", a, b));
    }
  }

  std::mt19937 rng_;
};

void run(uint32_t seed, bool symbolic) {
  SCOPED_TRACE(str("seed ", static_cast<int64_t>(seed)));
  RandomGraph random(seed);
  std::vector<In> inputs = random.inputs();
  Options options;
  options.symbolic = symbolic;
  check(
      inputs,
      [&](const Values& in) {
        RandomGraph again = random;
        Values pool = again.build(in), out;
        std::vector<int> free(in.size());
        for (size_t i = 0; i < in.size(); ++i) free[i] = static_cast<int>(i);
        options.into.clear();
        for (int i = 1 + again.pick(4); i > 0; --i) {
          out.push_back(again.pick(3) ? pool.back() : pool[again.pick(static_cast<int>(pool.size()))]);
          pool.pop_back();
          int into = -1;
          // Some results overwrite an input of their shape.
          for (size_t k = 0; k < free.size() && again.pick(2); ++k)
            if (into < 0 && free[k] >= 0 && ops::shape_of(in[k]) == ops::shape_of(out.back())) std::swap(into, free[k]);
          options.into.push_back(into);
        }
        return out;
      },
      options);
}

TEST(Fuzz, AgreesWithTheInterpreter) {
  // BRASA_FUZZ_SEED: one graph again, or where a longer run begins; BRASA_FUZZ_COUNT: how many.
  const char *from = std::getenv("BRASA_FUZZ_SEED"), *many = std::getenv("BRASA_FUZZ_COUNT");
  uint32_t seed = from ? static_cast<uint32_t>(std::atoll(from)) : 201;
  int count = many ? std::atoi(many) : from ? 1 : 60;
  for (int i = 0; i < count && !::testing::Test::HasFailure(); ++i, ++seed) run(seed, seed % 4 == 0);
}

}  // namespace
}  // namespace brasa::compiler
