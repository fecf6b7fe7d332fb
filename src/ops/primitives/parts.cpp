#include "ops/complex.h"
#include "ops/primitives/families.h"
#include "ops/primitives/interp.h"
#include "ops/primitives/rules.h"
#include "support/checked.h"
#include "support/error.h"

// Complex numbers in memory, as views and functions of libraries take them. Loops know their parts only.
namespace brasa::ops {

namespace {

Array interleaved(const Node& n, std::span<const Array* const> in) {
  Array out = result_array(n);
  for (int64_t i = 0; i < in[0]->numel(); ++i) {
    std::complex<double> z = get_complex(*in[0], i);
    set(out, 2 * i, z.real());
    set(out, 2 * i + 1, z.imag());
  }
  return out;
}
Array paired(const Node& n, std::span<const Array* const> in) {
  Array out = result_array(n);
  for (int64_t i = 0; i < out.numel(); ++i) set_complex(out, i, {get(*in[0], 2 * i), get(*in[0], 2 * i + 1)});
  return out;
}

// Linear in real numbers: neither is what the other's result comes from but the other way round.
void add_views(Table& t) {
  t.prim("as_real(Tensor z) -> Tensor")
      .kind(Kind::Whole)
      .dense()
      .doc("The parts as a last dimension of size 2, as they lie in memory.")
      .type([](const Args& args) {
        const Type& z = ir::type_of(args[0].get<Value>());
        BRASA_CHECK(is_complex(z.dtype), "view_as_real is only supported for complex tensors, got ", z);
        Type out{real_part_of(z.dtype), z.shape, false};
        out.shape.push_back(Expr(2));
        return std::vector<Type>{out};
      })
      .eval([](const Node& n, std::span<const Array* const> in) { return std::vector<Array>{interleaved(n, in)}; })
      .batched(batched_by_repeating)
      .transposed([](size_t, const Node&, Value ct) { return call("prim::as_complex", {ct}); })
      .view_rule([](const Args&, const Strided& in) -> std::optional<Strided> {
        Strided out{in.sizes, {}, checked_mul(in.offset, 2)};
        for (int64_t s : in.strides) out.strides.push_back(checked_mul(s, 2));
        out.sizes.push_back(2);
        out.strides.push_back(1);
        return out;
      });
  t.prim("as_complex(Tensor x) -> Tensor")
      .kind(Kind::Whole)
      .dense()
      .doc("The last dimension, of size 2, as the parts of complex numbers.")
      .type([](const Args& args) {
        const Type& x = ir::type_of(args[0].get<Value>());
        BRASA_CHECK(
            is_floating(x.dtype) && x.dtype != DType::BFloat16,
            "view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar type: ",
            name(x.dtype));
        BRASA_CHECK(x.rank() > 0 && may_equal(x.shape.back(), Expr(2)),
                    "Tensor must have a last dimension of size 2, got ", x);
        return std::vector<Type>{{complex_of(x.dtype), Shape(x.shape.begin(), x.shape.end() - 1), false}};
      })
      .eval([](const Node& n, std::span<const Array* const> in) { return std::vector<Array>{paired(n, in)}; })
      .batched(batched_by_repeating)
      .transposed([](size_t, const Node&, Value ct) { return call("prim::as_real", {ct}); })
      .view_rule([](const Args&, const Strided& in) -> std::optional<Strided> {
        if (in.strides.back() != 1 || in.offset % 2 != 0) return std::nullopt;
        Strided out{in.sizes, in.strides, in.offset / 2};
        out.sizes.pop_back();
        out.strides.pop_back();
        for (int64_t& s : out.strides) {
          if (s % 2 != 0) return std::nullopt;
          s /= 2;
        }
        return out;
      });
}

}  // namespace

void add_parts_primitives(Table& t) {
  add_views(t);
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
