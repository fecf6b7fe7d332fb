#include "ops/algebra.h"
#include "ops/literal.h"
#include "ops/rows.h"
#include "support/error.h"

namespace brasa::ops {
namespace {

template <Literal primitive>
Value on_bits(const std::array<Value, 2>& operands) {
  DType t = dtype_of(operands[0]);
  BRASA_CHECK(is_integral(t, true), "\"", primitive.text, "\" not implemented for ", name(t),
              ": expected integers or bool");
  constexpr std::string_view kind = primitive.text;
  BRASA_CHECK(t != DType::Bool || (kind != "shl" && kind != "shr"), "\"", primitive.text,
              "\" not implemented for bool");
  return prim::binary(primitive.text, operands[0], operands[1]);
}

// The overloads .Tensor, <scalar> and .Scalar_Tensor of an operator on bits.
template <Literal primitive>
void bits(Table& t, const char* name, const char* scalar, const char* doc) {
  t.op(str("aten::", name, ".Tensor(Tensor self, Tensor other) -> Tensor"))
      .out(Out::Cast)
      .doc(doc)
      .composed([](Value a, Value b) { return on_bits<primitive>(promoted(a, b)); })
      .samples({{ints(3, 5).in(0, 9), ints(5).in(0, 9)}, {ints(0), ints(1)}});
  t.op(str("aten::", name, scalar, "(Tensor self, Scalar other) -> Tensor"))
      .out(Out::Cast)
      .doc(doc)
      .composed([](Value a, Number b) { return on_bits<primitive>(promoted(a, b)); })
      .samples({{ints(3, 5).in(0, 9), 3}});
  t.op(str("aten::", name, ".Scalar_Tensor(Scalar self, Tensor other) -> Tensor"))
      .doc(doc)
      .composed([](Number a, Value b) {
        auto [y, x] = promoted(b, a);
        return on_bits<primitive>({x, y});
      })
      .samples({{3, ints(3, 5).in(0, 9)}});
}

}  // namespace

void add_bitwise(Table& t) {
  bits<"bit_and">(t, "bitwise_and", ".Scalar", "Both bits set; of bools the logical and.");
  bits<"bit_or">(t, "bitwise_or", ".Scalar", "Either bit set; of bools the logical or.");
  bits<"bit_xor">(t, "bitwise_xor", ".Scalar", "Just one bit set; of bools the exclusive or.");
  bits<"shl">(t, "bitwise_left_shift", ".Tensor_Scalar",
              "self * 2^other without carry; 0 for distances outside the width.");
  bits<"shr">(t, "bitwise_right_shift", ".Tensor_Scalar",
              "self / 2^other rounded down; the sign's fill for distances outside the width.");
  for (auto [name, of] : {std::pair{"and", "bitwise_and"}, {"or", "bitwise_or"}, {"xor", "bitwise_xor"}}) {
    t.alias(str("aten::__", name, "__.Tensor"), str("aten::", of, ".Tensor"));
    t.alias(str("aten::__", name, "__.Scalar"), str("aten::", of, ".Scalar"));
  }
  for (auto [name, of] : {std::pair{"lshift", "bitwise_left_shift"}, {"rshift", "bitwise_right_shift"}}) {
    t.alias(str("aten::__", name, "__.Tensor"), str("aten::", of, ".Tensor"));
    t.alias(str("aten::__", name, "__.Scalar"), str("aten::", of, ".Tensor_Scalar"));
  }
  t.op("aten::bitwise_not(Tensor self) -> Tensor")
      .doc("Every bit flipped; of bools the logical not.")
      .composed([](Value x) {
        BRASA_CHECK(is_integral(dtype_of(x), true), "bitwise_not: expected integers or bool, got ", name(dtype_of(x)));
        return prim::unary("bit_not", x);
      })
      .samples({{ints(3, 5)}, {bools(4)}});

  t.op("aten::logical_not(Tensor self) -> Tensor")
      .out(Out::Cast)
      .doc("Is it 0?")
      .composed([](Value x) { return logical_not(x); })
      .samples({{floats(3, 5)}, {bools(4)}});
  t.op("aten::logical_and(Tensor self, Tensor other) -> Tensor")
      .out(Out::Cast)
      .doc("Are both not 0?")
      .composed([](Value a, Value b) { return logical_and(a, b); })
      .samples({{bools(3, 5), ints(5)}, {floats(0), floats(1)}});
  t.op("aten::logical_or(Tensor self, Tensor other) -> Tensor")
      .out(Out::Cast)
      .doc("Is either not 0?")
      .composed([](Value a, Value b) { return logical_or(a, b); })
      .samples({{bools(3, 5), ints(5)}});
  t.op("aten::logical_xor(Tensor self, Tensor other) -> Tensor")
      .out(Out::Cast)
      .doc("Is just one of them not 0?")
      .composed([](Value a, Value b) { return pointwise("bit_xor", convert(a, DType::Bool), convert(b, DType::Bool)); })
      .samples({{bools(3, 5), ints(5)}});
}

}  // namespace brasa::ops
