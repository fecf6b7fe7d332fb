#pragma once

#include <bit>
#include <string>
#include <string_view>
#include <vector>

#include "support/str.h"

namespace brasa::runtime::cuda {

/// The text of a kernel in PTX, NVIDIA's assembly language: registers are new with each result; the driver's assembler allocates them.
class Ptx {
 public:
  using Reg = std::string;
  using Regs = std::vector<Reg>;

  /// An instruction.
  template <class... A>
  void op(std::string_view name, const A&... operands) {
    std::string all;
    ((all += str(all.empty() ? " " : ", ", operands)), ...);
    body_ += str("  ", name, all, ";\n");
  }
  /// With a new register for its result; the letter is the register's type.
  template <class... A>
  Reg f(std::string_view name, const A&... operands) {  // float32
    return made('f', name, operands...);
  }
  template <class... A>
  Reg r(std::string_view name, const A&... operands) {  // 32 bits
    return made('r', name, operands...);
  }
  template <class... A>
  Reg d(std::string_view name, const A&... operands) {  // 64 bits
    return made('d', name, operands...);
  }
  template <class... A>
  Reg p(std::string_view name, const A&... operands) {  // a condition
    return made('p', name, operands...);
  }
  Reg fresh(char type) { return str('%', type, count(type)++); }
  Regs fresh(char type, int n) {
    Regs out;
    for (int i = 0; i < n; ++i) out.push_back(fresh(type));
    return out;
  }
  /// The i-th parameter, of 8 bytes.
  Reg parameter(int i) { return d("ld.param.u64", str("[p", i, "]")); }
  Reg parameter32(int i) { return r("cvt.u32.u64", parameter(i)); }
  /// Where the i-th one lies, which is a map.
  Reg map(int i) { return d("cvta.param.u64", d("mov.b64", str("p", i))); }

  template <class F>
  void unless(const Reg& condition, const F& then) {
    std::string end = label();
    body_ += str("  @", condition, " bra ", end, ";\n");
    then();
    body_ += end + ":\n";
  }
  template <class F>
  void when(const Reg& condition, const F& then) {
    unless(p("not.pred", condition), then);
  }
  /// As long as `condition` gives true.
  template <class C, class F>
  void loop(const C& condition, const F& body) {
    std::string again = label();
    body_ += again + ":\n";
    when(condition(), [&] {
      body();
      body_ += str("  bra ", again, ";\n");
    });
  }

  /// `together`: blocks that a processor must have registers for. `hopper`: for GPUs of capability 9.0 alone, in place of those since 8.0; there
  /// `cluster` blocks may use each other's shared memory. The first `maps` parameters are TensorMaps.
  std::string kernel(std::string_view name, int parameters, int threads, int shared_bytes, int together = 1,
                     bool hopper = false, int cluster = 1, int maps = 0) const {
    std::string out = hopper ? ".version 8.0\n.target sm_90a\n" : ".version 7.0\n.target sm_80\n";
    out += ".address_size 64\n\n";
    std::string shared = str(".shared .align ", hopper ? 1024 : 16, " .b8 shared_memory[");
    // Of none it is the launch that says how much.
    if (!shared_bytes) out += str(".extern ", shared, "];\n");
    out += str(".visible .entry ", name, "(");
    for (int i = 0; i < parameters; ++i)
      out += str(i ? ", " : "", i < maps ? str(".param .align 128 .b8 p", i, "[128]") : str(".param .u64 p", i));
    out += str(")\n.maxntid ", threads, ", 1, 1\n");
    if (together > 1) out += str(".minnctapersm ", together, "\n");
    if (cluster > 1) out += str(".reqnctapercluster ", cluster, ", 1, 1\n");
    out += "{\n";
    constexpr std::pair<char, const char*> kTypes[] = {
        {'p', ".pred"}, {'h', ".b16"}, {'r', ".b32"}, {'f', ".f32"}, {'d', ".b64"}};
    for (auto [letter, type] : kTypes)
      out += str("  .reg ", type, " %", letter, "<", counts_[letter - 'a'] + 1, ">;\n");
    if (shared_bytes) out += str("  ", shared, shared_bytes, "];\n");
    return out + body_ + "  ret;\n}\n";
  }

 private:
  template <class... A>
  Reg made(char type, std::string_view name, const A&... operands) {
    Reg out = fresh(type);
    op(name, out, operands...);
    return out;
  }
  int& count(char type) { return counts_[type - 'a']; }
  std::string label() { return str("L", labels_++); }

  std::string body_;
  int counts_[26] = {}, labels_ = 0;
};

/// Registers as one operand.
inline std::string braces(const Ptx::Regs& regs) {
  std::string out = "{";
  for (size_t i = 0; i < regs.size(); ++i) out += (i ? ", " : "") + regs[i];
  return out + "}";
}
/// What memory of so many bytes is to an instruction that reads or writes it; of 16 it takes four registers.
inline const char* memory_type(int bytes) {
  constexpr const char* kTypes[] = {"u8", "u16", "b32", "b64", "v4.b32"};
  return kTypes[std::bit_width(static_cast<unsigned>(bytes)) - 1];
}

}  // namespace brasa::runtime::cuda
