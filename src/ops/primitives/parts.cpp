#include "ops/complex.h"
#include "ops/primitives/families.h"
#include "ops/primitives/interp.h"
#include "ops/primitives/rules.h"
#include "support/error.h"

// Complex numbers in memory, as functions of libraries take them. Loops know their parts only.
namespace brasa::ops {

void add_parts_primitives(Table& t) {
  t.prim("join_parts(Tensor re, Tensor im) -> Tensor")
      .kind(Kind::Whole)
      .doc("re + i im, in memory.")
      .type([](const Args& args) {
        const Type &re = ir::type_of(args[0].get<Value>()), &im = ir::type_of(args[1].get<Value>());
        BRASA_CHECK(is_floating(re.dtype) && re.dtype == im.dtype && re.shape == im.shape,
                    "prim::join_parts: expected two parts of one floating dtype and shape, got ", re, " and ", im);
        return std::vector<Type>{{complex_of(re.dtype), re.shape, false}};
      })
      .eval([](const Node& n, std::span<const Array* const> in) {
        Array out = result_array(n);
        for (int64_t i = 0; i < out.numel(); ++i) set_complex(out, i, {get(*in[0], i), get(*in[1], i)});
        return std::vector<Array>{std::move(out)};
      })
      .batched(batched_by_repeating)
      .jvp([](const Node& n, std::span<const Value> t) {
        return std::vector<Value>{complex(or_zeros(t[0], n.arg<Value>(0)), or_zeros(t[1], n.arg<Value>(1)))};
      })
      .vjp([](const Node&, std::span<const Value> cts, const std::vector<bool>&) {
        return std::vector<Value>{real(cts[0]), imag(cts[0])};
      });
  t.prim("split_parts(Tensor z) -> (Tensor re, Tensor im)")
      .kind(Kind::Whole)
      .doc("The parts of complex numbers in memory.")
      .type([](const Args& args) {
        const Type& z = ir::type_of(args[0].get<Value>());
        BRASA_CHECK(is_complex(z.dtype), "prim::split_parts: expected complex numbers, got ", z);
        Type part{real_part_of(z.dtype), z.shape, false};
        return std::vector<Type>{part, part};
      })
      .eval([](const Node& n, std::span<const Array* const> in) {
        std::vector<Array> out = {result_array(n, 0), result_array(n, 1)};
        for (int64_t i = 0; i < out[0].numel(); ++i) {
          std::complex<double> z = get_complex(*in[0], i);
          set(out[0], i, z.real());
          set(out[1], i, z.imag());
        }
        return out;
      })
      .batched(batched_by_repeating)
      .jvp([](const Node&, std::span<const Value> t) { return std::vector<Value>{real(t[0]), imag(t[0])}; })
      .vjp([](const Node& n, std::span<const Value> cts, const std::vector<bool>&) {
        Value re = result_of(n);
        return std::vector<Value>{complex(or_zeros(cts[0], re), or_zeros(cts[1], re))};
      });
}

}  // namespace brasa::ops
