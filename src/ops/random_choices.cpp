#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "ops/random_key.h"
#include "ops/rows.h"
#include "ops/shapes.h"
#include "support/error.h"

// Every element draws one 32-bit word of the generator's Philox stream, so that a seed gives the same numbers on any device.
namespace brasa::ops {
namespace {

// The numbers below n, each with the probability that its weight has among those of its row.
Value multinomial(Value weights, Expr count, bool replacement, Value key) {
  int64_t rank = rank_of(weights);
  BRASA_CHECK(rank == 1 || rank == 2, "multinomial: expected weights of 1 or 2 dimensions, got ", type_of(weights));
  BRASA_CHECK(is_floating(dtype_of(weights)), "multinomial: expected floating weights, got ", type_of(weights));
  BRASA_CHECK(!count.is_constant() || count.constant() > 0, "multinomial: cannot sample n_sample <= 0 samples, got ",
              count);
  Value w = to_opmath(weights);
  Shape shape = shape_of(w);
  Expr n = shape.back();
  BRASA_CHECK(!is_less(n, 1), "multinomial: there is nothing to draw from, got ", type_of(weights));
  check_values(logical_and(ge(w, 0), lt(w, std::numeric_limits<double>::infinity())),
               "multinomial: probability tensor contains either `inf`, `nan` or element < 0");
  check_values(gt(sum(w, {rank - 1}), 0), "multinomial: invalid multinomial distribution (sum of probabilities <= 0)");
  Value own = derived_key(key);  // the weights may be more than the results
  if (!replacement) {
    BRASA_CHECK(!is_less(n, count), "multinomial: cannot sample ", count, " of ", n, " without replacement");
    // Weighted sampling by the greatest w / e of exponential e (Efraimidis & Spirakis 2006).
    Value rate = -log1p(-uniform(own, shape, dtype_of(w)));
    Value order = prim::sort(w / rate, rank - 1, true)[1];
    return narrow(order, rank - 1, 0, count);
  }
  Value sums = call("aten::cumsum", {w, rank - 1, Arg()});
  Shape drawn = shape;
  drawn.back() = count;
  Value at = uniform(own, drawn, dtype_of(w)) * narrow(sums, rank - 1, n - 1, 1);
  Value found = call("aten::searchsorted.Tensor", {sums, at, false, true, Arg(), Arg()});
  return minimum(found, size_tensor(n - 1, shape_of(found)));
}

Value bernoulli(Value p, Value key) {
  BRASA_CHECK(is_floating(dtype_of(p)), "bernoulli: expected floating probabilities, got ", type_of(p));
  check_values(logical_and(ge(p, 0), le(p, 1)), "bernoulli: expected probabilities in [0, 1]");
  return convert(lt(uniform(key, shape_of(p), opmath(dtype_of(p))), to_opmath(p)), dtype_of(p));
}

}  // namespace

void add_random_choices(Table& t) {
  t.op("aten::multinomial(Tensor self, SymInt num_samples, bool replacement=False, *, Generator? generator=None) -> Tensor")
      .doc("Indices along the last dimension, drawn with the probabilities that self's weights have in their row.")
      .random()
      .composed(
          [](Value x, Expr count, bool replacement, Value key) { return multinomial(x, count, replacement, key); })
      .precondition([](Value, Expr count, bool, Value) {
        BRASA_CHECK(count.constant() > 0, "multinomial: cannot sample n_sample <= 0 samples, got ", count);
      })
      .no_gradient()
      .samples({{floats(3, 5).in(0.1, 1), 2}, {floats(4).in(0.1, 1), 7, true}});
  t.op("aten::bernoulli(Tensor self, *, Generator? generator=None) -> Tensor")
      .doc("1 with probability self, else 0.")
      .random()
      .composed(bernoulli)
      .vjp(zero_derivative())
      .samples({{floats(3, 5).in(0, 1)}});
  t.op("aten::bernoulli.p(Tensor self, float p=0.5, *, Generator? generator=None) -> Tensor")
      .doc("1 with probability p, else 0, in self's shape and dtype.")
      .random()
      .composed([](Value x, Number p, Value key) {
        BRASA_CHECK(!is_complex(dtype_of(x)), "\"bernoulli\" not implemented for ", name(dtype_of(x)));
        return convert(lt(uniform(key, shape_of(x), DType::Float32), p), dtype_of(x));
      })
      .precondition([](Value, double p, Value) {
        BRASA_CHECK(p >= 0 && p <= 1, "bernoulli_ expects p to be in [0, 1], but got p=", p);
      })
      .no_gradient()
      .samples({{floats(3, 5), 0.25}});
  t.op("aten::bernoulli.Tensor(Tensor self, Tensor p, *, Generator? generator=None) -> Tensor")
      .doc("1 with probability p, which broadcasts to self, else 0, in self's shape and dtype. The gradient is zero.")
      .random()
      .composed([](Value x, Value p, Value key) {
        BRASA_CHECK(!is_complex(dtype_of(x)), "\"bernoulli\" not implemented for ", name(dtype_of(x)));
        return convert(bernoulli(broadcast_to(p, shape_of(x)), key), dtype_of(x));
      })
      .vjp(zero_derivative())
      .samples({{floats(3, 5), floats(5).in(0, 1)}, {ints(3, 5), floats().in(0, 1)}});
}

}  // namespace brasa::ops
