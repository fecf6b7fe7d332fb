#include "ops/rows.h"
#include "ops/search.h"
#include "ops/shapes.h"
#include "support/error.h"

// Is an element one of a set?
namespace brasa::ops {
namespace {

// So many elements are compared with all of a set, and so many of a set with all elements; of more the set is sorted.
constexpr int64_t kFew = 64, kSmallSet = 256;

Value compared(Value x, Value set) {
  int64_t last = rank_of(x);
  Value each = repeat_along(x, last, size_of(set, 0));
  return reduce(eq(each, broadcast_to(set, shape_of(each))), {last}, false, "or");
}

Value looked_up(Value x, Value set) {
  Value sorted = prim::sort(set, 0, false)[0];
  Value place = minimum(count_before(sorted, x, false), size_tensor(size_of(set, 0) - 1, shape_of(x)));
  return eq(prim::gather(sorted, {place}, {0}), x);
}

Value among(Value x, Value set, bool invert) {
  for (Value v : {x, set})
    BRASA_CHECK(dtype_of(v) != DType::Bool && !is_complex(dtype_of(v)),
                "Unsupported input type encountered for isin(): ", name(dtype_of(v)));
  DType t = result_type({x, set});
  Value all = flattened(convert(set, t));
  x = convert(x, t);
  Value found =
      is_less(size_of(all, 0), kSmallSet) || is_less(type_of(x).numel(), kFew) ? compared(x, all) : looked_up(x, all);
  return invert ? logical_not(found) : found;
}

}  // namespace

void add_membership(Table& t) {
  const char* doc = "Is each element one of the test elements? assume_unique only promises what is not needed here.";
  t.op("aten::isin.Tensor_Tensor(Tensor elements, Tensor test_elements, *, bool assume_unique=False, bool invert=False) -> Tensor")
      .doc(doc)
      .composed([](Value x, Value set, bool, bool invert) { return among(x, set, invert); })
      .no_gradient()
      .samples(
          {{ints(3, 5).in(0, 9), ints(2, 2).in(0, 9)}, {floats(4), floats(0), false, true}, {floats(0), floats(2)}});
  t.op("aten::isin.Tensor_Scalar(Tensor elements, Scalar test_element, *, bool assume_unique=False, bool invert=False) -> Tensor")
      .doc(doc)
      .composed([](Value x, Number n, bool, bool invert) { return among(x, to_value(n), invert); })
      .no_gradient()
      .samples({{ints(3, 5).in(0, 3), 1}, {floats(4), 0.5, false, true}});
  t.op("aten::isin.Scalar_Tensor(Scalar element, Tensor test_elements, *, bool assume_unique=False, bool invert=False) -> Tensor")
      .doc(doc)
      .composed([](Number n, Value set, bool, bool invert) { return among(to_value(n), set, invert); })
      .no_gradient()
      .samples({{1, ints(3, 5).in(0, 3)}});
}

}  // namespace brasa::ops
