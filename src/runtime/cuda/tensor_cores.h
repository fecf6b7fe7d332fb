#pragma once

#include <array>
#include <bit>
#include <string>
#include <vector>

#include "runtime/cuda/epilogue.h"
#include "runtime/cuda/ptx.h"
#include "runtime/device.h"

namespace brasa::runtime::cuda {

/// What a warp multiplies by tensor cores: 16 rows by 8 columns, where a row of either operand is 32 bytes of what is summed up, of float16,
/// bfloat16, or of float32 that is rounded to TF32. Sums are of float32. A lane's parts of both operands lie at the same bytes for all of them.
class TensorCores {
 public:
  using Reg = Ptx::Reg;
  using Regs = Ptx::Regs;

  explicit TensorCores(DType dtype) : dtype_(dtype), element_(static_cast<int>(size_of(dtype))) {}

 protected:
  bool rounds() const { return dtype_ == DType::Float32; }

  static std::string number(double v) {
    constexpr char kDigits[] = "0123456789abcdef";
    uint32_t bits = std::bit_cast<uint32_t>(static_cast<float>(v));
    std::string out = "0f";
    for (int shift = 28; shift >= 0; shift -= 4) out += kDigits[bits >> shift & 15];
    return out;
  }

  // Four matrices of 8 rows of 16 bytes in shared memory, a register for each; `transposed` is for elements of 2 bytes.
  Regs matrices(const Reg& at, int offset, bool transposed = false) {
    Regs out = p_.fresh('r', 4);
    p_.op(transposed ? "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16" : "ldmatrix.sync.aligned.m8n8.x4.shared.b16",
          braces(out), str("[", at, "+", offset, "]"));
    return out;
  }
  // As the tensor cores take it: they would cut the bits of float32 off.
  Reg operand(const Reg& r) { return rounds() ? p_.r("cvt.rna.tf32.f32", r) : r; }
  Regs operands(Regs all) {
    for (Reg& r : all) r = operand(r);
    return all;
  }
  void multiply(const Regs& sum, const Regs& a, const Reg& b0, const Reg& b1) {
    const char* type = rounds()                   ? "k8.row.col.f32.tf32.tf32.f32"
                       : dtype_ == DType::Float16 ? "k16.row.col.f32.f16.f16.f32"
                                                  : "k16.row.col.f32.bf16.bf16.f32";
    p_.op(str("mma.sync.aligned.m16n8", type), braces(sum), braces(a), braces({b0, b1}), braces(sum));
  }

  // Two elements of 2 bytes in a register.
  Reg rounded(const Reg& low, const Reg& high) {
    return p_.r(dtype_ == DType::Float16 ? "cvt.rn.f16x2.f32" : "cvt.rn.bf16x2.f32", high, low);
  }
  Regs in_pairs(const Regs& halves) {
    Regs out;
    for (size_t i = 0; i < halves.size(); i += 2) out.push_back(p_.r("mov.b32", braces({halves[i], halves[i + 1]})));
    return out;
  }
  std::array<Reg, 2> widened(const Reg& pair) {
    if (dtype_ != DType::Float16) {
      Reg low = p_.r("shl.b32", pair, 16), high = p_.r("and.b32", pair, -65536);
      return {p_.f("mov.b32", low), p_.f("mov.b32", high)};
    }
    Regs halves = p_.fresh('h', 2);
    p_.op("mov.b32", braces(halves), pair);
    Reg low = p_.f("cvt.f32.f16", halves[0]), high = p_.f("cvt.f32.f16", halves[1]);
    return {low, high};
  }
  // What an epilogue writes, of two elements and those at their places in another matrix. What it only passes on is rounded already.
  Regs finished(const Epilogue& epilogue, const Regs& pairs) {
    if (epilogue.is_none()) return pairs;
    Regs low, high, out;
    for (const Reg& pair : pairs) {
      std::array<Reg, 2> both = widened(pair);
      low.push_back(both[0]);
      high.push_back(both[1]);
    }
    low = computed(epilogue, p_, low);
    high = computed(epilogue, p_, high);
    for (size_t i = 0; i < low.size(); ++i) {
      auto number = static_cast<size_t>(epilogue.results[i]);
      out.push_back(number < pairs.size() ? pairs[number] : rounded(low[i], high[i]));
    }
    return out;
  }
  // Of the elements that two registers have.
  void add_products(const Reg& sum, const Reg& a, const Reg& b) {
    if (element_ == 4) return p_.op("fma.rn.f32", sum, a, b, sum);
    std::array<Reg, 2> left = widened(a), right = widened(b);
    for (int e : {0, 1}) p_.op("fma.rn.f32", sum, left[e], right[e], sum);
  }

  Reg exp2(const Reg& x) { return p_.f("ex2.approx.ftz.f32", x); }
  // Over lanes beside each other: four share a row of a product.
  Reg over_lanes(std::string_view op, Reg v, int lanes = 4) {
    for (int step = 1; step < lanes; step *= 2) {
      Reg other = p_.fresh('f');
      p_.op("shfl.sync.bfly.b32", other, v, step, 31, "-1");
      v = p_.f(op, v, other);
    }
    return v;
  }

  Ptx p_;
  DType dtype_;
  int element_;  // bytes
};

}  // namespace brasa::runtime::cuda
