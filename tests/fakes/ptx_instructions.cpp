#include <brasa/elements.h>

#include <algorithm>
#include <cmath>

#include "ptx_machine.h"

// Instructions of single numbers, of memory, and of warps.
namespace brasa::fakes {
namespace {

template <class F>
void unary(Machine& m, const Instruction& i, uint32_t lanes, F f) {
  each(lanes, [&](int l) { m.set(i.operands[0], l, f(m.get(i.operands[1], l))); });
}
template <class F>
void binary(Machine& m, const Instruction& i, uint32_t lanes, F f) {
  each(lanes, [&](int l) { m.set(i.operands[0], l, f(m.get(i.operands[1], l), m.get(i.operands[2], l))); });
}
template <class F>
void of_floats(Machine& m, const Instruction& i, uint32_t lanes, F f) {
  each(lanes,
       [&](int l) { m.set(i.operands[0], l, static_cast<float>(f(m.f(i.operands[1], l), m.f(i.operands[2], l)))); });
}
template <class T, class F>
void compare(Machine& m, const Instruction& i, uint32_t lanes, F f) {
  each(lanes, [&](int l) {
    bool others = i.operands.size() < 4 || m.get(i.operands[3], l);
    auto a = static_cast<T>(m.get(i.operands[1], l)), b = static_cast<T>(m.get(i.operands[2], l));
    m.set(i.operands[0], l, uint64_t{f(a, b) && others});
  });
}
template <class T, class F>
void compare(Machine& m, const Instruction& i, uint32_t lanes) {
  compare<T>(m, i, lanes, F());
}
template <class F>
void compare_floats(Machine& m, const Instruction& i, uint32_t lanes, F f) {
  each(lanes, [&](int l) { m.set(i.operands[0], l, uint64_t{f(m.f(i.operands[1], l), m.f(i.operands[2], l))}); });
}
// Shifts by more than all bits give zero.
template <class T>
void shift_right(Machine& m, const Instruction& i, uint32_t lanes) {
  constexpr uint64_t kBits = 8 * sizeof(T);
  binary(m, i, lanes, [](uint64_t a, uint64_t b) { return u(b) < kBits ? uint64_t{static_cast<T>(a)} >> u(b) : 0; });
}
template <class T>
void shift_left(Machine& m, const Instruction& i, uint32_t lanes) {
  constexpr uint64_t kBits = 8 * sizeof(T);
  binary(m, i, lanes, [](uint64_t a, uint64_t b) { return uint64_t{u(b) < kBits ? static_cast<T>(a << u(b)) : T{0}}; });
}
template <class T, template <class> class F>
void bitwise(Machine& m, const Instruction& i, uint32_t lanes) {
  binary(m, i, lanes, [](uint64_t a, uint64_t b) { return uint64_t{static_cast<T>(F<uint64_t>()(a, b))}; });
}
template <class T>
uint64_t rounded(float low, float high) {
  T parts[2] = {T(low), T(high)};
  uint32_t out = 0;
  std::memcpy(&out, parts, sizeof out);
  return out;
}
template <class T>
void round_two(Machine& m, const Instruction& i, uint32_t lanes) {
  each(lanes, [&](int l) { m.set(i.operands[0], l, rounded<T>(m.f(i.operands[2], l), m.f(i.operands[1], l))); });
}

template <size_t bytes>
void copy_to_shared(Machine& m, const Instruction& i, uint32_t lanes) {
  each(lanes, [&](int l) {
    std::byte* to = m.shared_at(m.get(i.operands[0], l), bytes);
    size_t given = m.get(i.operands[3], l);
    uint64_t from = m.get(i.operands[1], l);
    if (given && from % bytes)
      fail("a copy of " + std::to_string(bytes) + " bytes from an address that is not aligned");
    std::memset(to, 0, bytes);
    if (given) std::memcpy(to, reinterpret_cast<const void*>(from), given);
  });
}
template <int count>
void load_shared(Machine& m, const Instruction& i, uint32_t lanes) {
  each(lanes, [&](int l) {
    uint32_t parts[count];
    std::memcpy(parts, m.shared_at(m.get(i.operands[1], l), sizeof parts, l, Uses::Read), sizeof parts);
    for (int k = 0; k < count; ++k) (*m.registers)[i.operands[0].list[k]][l] = parts[k];
  });
}
template <class T>
void load_one_shared(Machine& m, const Instruction& i, uint32_t lanes) {
  each(lanes, [&](int l) {
    T v = 0;
    std::memcpy(&v, m.shared_at(m.get(i.operands[1], l), sizeof v, l, Uses::Read), sizeof v);
    m.set(i.operands[0], l, uint64_t{v});
  });
}
void store_one_shared(Machine& m, const Instruction& i, uint32_t lanes) {
  each(lanes, [&](int l) {
    uint64_t v = m.get(i.operands[1], l);
    std::memcpy(m.shared_at(m.get(i.operands[0], l), sizeof v, l, Uses::Write), &v, sizeof v);
  });
}
// What was there before.
uint32_t add_shared(Machine& m, const Operand& to, const Operand& what, int lane) {
  uint32_t before = 0;
  std::byte* at = m.shared_at(m.get(to, lane), sizeof before, lane, Uses::Add);
  std::memcpy(&before, at, sizeof before);
  uint32_t after = before + u(m.get(what, lane));
  std::memcpy(at, &after, sizeof after);
  return before;
}
template <class T>
void load(Machine& m, const Instruction& i, uint32_t lanes) {
  each(lanes, [&](int l) { m.set(i.operands[0], l, uint64_t{*reinterpret_cast<const T*>(m.get(i.operands[1], l))}); });
}
template <int count>
void load_parts(Machine& m, const Instruction& i, uint32_t lanes) {
  each(lanes, [&](int l) {
    uint64_t from = m.get(i.operands[1], l);
    if (from % (4 * count)) fail("a load from an address that is not aligned");
    for (int k = 0; k < count; ++k)
      (*m.registers)[i.operands[0].list[k]][l] = reinterpret_cast<const uint32_t*>(from)[k];
  });
}
template <class T>
void store(Machine& m, const Instruction& i, uint32_t lanes) {
  each(lanes, [&](int l) {
    uint64_t to = m.get(i.operands[0], l);
    if (to % sizeof(T)) fail("a store to an address that is not aligned");
    *reinterpret_cast<T*>(to) = static_cast<T>(m.get(i.operands[1], l));
  });
}

template <int count>
void store_parts(Machine& m, const Instruction& i, uint32_t lanes) {
  each(lanes, [&](int l) {
    uint64_t to = m.get(i.operands[0], l);
    if (to % (4 * count)) fail("a store to an address that is not aligned");
    for (int k = 0; k < count; ++k) reinterpret_cast<uint32_t*>(to)[k] = u((*m.registers)[i.operands[1].list[k]][l]);
  });
}
template <int count>
void store_shared(Machine& m, const Instruction& i, uint32_t lanes) {
  each(lanes, [&](int l) {
    std::byte* to = m.shared_at(m.get(i.operands[0], l), 4 * count, l, Uses::Write);
    for (int k = 0; k < count; ++k) {
      uint32_t v = u(count == 1 ? m.get(i.operands[1], l) : (*m.registers)[i.operands[1].list[k]][l]);
      std::memcpy(to + 4 * k, &v, 4);
    }
  });
}

Instructions with_others(Instructions all) {
  add_tensor_cores(all);
  add_copies(all);
  return all;
}

}  // namespace

const Instructions& instructions() {
  using M = Machine&;
  using I = const Instruction&;
  using L = uint32_t;
  auto choose = [](M m, I i, L lanes) {
    each(lanes,
         [&](int l) { m.set(i.operands[0], l, uint64_t{u(m.get(i.operands[m.get(i.operands[3], l) ? 1 : 2], l))}); });
  };
  auto word = [](M m, I i, L l) { unary(m, i, l, [](uint64_t v) { return uint64_t{u(v)}; }); };
  static const Instructions all = with_others({
      {"bar.sync", [](M, I, L) {}},
      {"barrier.cluster.arrive.aligned", [](M, I, L) {}},
      {"barrier.cluster.wait.aligned", [](M, I, L) {}},
      {"mapa.shared::cluster.u32",
       [](M m, I i, L lanes) {
         each(lanes, [&](int l) {
           m.set(i.operands[0], l, m.get(i.operands[1], l) | (m.get(i.operands[2], l) + 1) << Machine::kBlockBits);
         });
       }},
      {"st.shared::cluster.f32",
       [](M m, I i, L lanes) {
         each(lanes, [&](int l) {
           uint32_t v = u(m.get(i.operands[1], l));
           std::memcpy(m.cluster_at(m.get(i.operands[0], l), sizeof v, l, Uses::Write), &v, sizeof v);
         });
       }},
      {"griddepcontrol.launch_dependents", [](M, I, L) {}},
      {"griddepcontrol.wait", [](M, I, L) {}},
      {"bar.warp.sync",
       [](M m, I i, L lanes) {
         whole_warp(i, lanes);
         ++m.of_warp;
       }},
      {"cp.async.commit_group", [](M, I, L) {}},
      {"cp.async.wait_group", [](M, I, L) {}},
      {"cp.async.cg.shared.global", copy_to_shared<16>},
      {"cp.async.ca.shared.global", copy_to_shared<4>},
      {"ld.param.u64", [](M m, I i, L l) { unary(m, i, l, [](uint64_t v) { return v; }); }},
      {"ld.global.f32", load<uint32_t>},
      {"ld.global.b16", load<uint16_t>},
      {"ld.global.u16", load<uint16_t>},
      {"ld.global.b32", load<uint32_t>},
      {"ld.global.b64", load<uint64_t>},
      {"ld.global.u8", load<uint8_t>},
      {"ld.global.v4.b32", load_parts<4>},
      {"ld.global.v4.f32", load_parts<4>},
      {"st.global.f32", store<uint32_t>},
      {"st.global.b32", store<uint32_t>},
      {"st.global.v2.b32", store_parts<2>},
      {"st.global.v2.f32", store_parts<2>},
      {"st.global.v4.b32", store_parts<4>},
      {"st.global.b16", store<uint16_t>},
      {"st.global.u8", store<uint8_t>},
      {"st.global.u16", store<uint16_t>},
      {"st.global.b64", store<uint64_t>},
      {"ld.shared.f32", load_one_shared<uint32_t>},
      {"ld.shared.b32", load_one_shared<uint32_t>},
      {"ld.shared.b64", load_one_shared<uint64_t>},
      {"st.shared.b64", store_one_shared},
      {"red.shared.add.u32", [](M m, I i, L lanes) { each(lanes, [&](int l) { add_shared(m, i.operands[0], i.operands[1], l); }); }},
      {"atom.shared.add.u32",
       [](M m, I i, L lanes) {
         each(lanes, [&](int l) {
           m.set(i.operands[0], l, uint64_t{add_shared(m, i.operands[1], i.operands[2], l)});
         });
       }},
      {"match.any.sync.b32",
       [](M m, I i, L lanes) {
         whole_warp(i, lanes);
         uint64_t alike[kLanes] = {};
         for (int l = 0; l < kLanes; ++l)
           for (int k = 0; k < kLanes; ++k)
             alike[l] |= uint64_t{u(m.get(i.operands[1], l)) == u(m.get(i.operands[1], k))} << k;
         for (int l = 0; l < kLanes; ++l) m.set(i.operands[0], l, alike[l]);
       }},
      {"ld.shared.v2.f32", load_shared<2>},
      {"ld.shared.v2.b32", load_shared<2>},
      {"ld.shared.v4.b32", load_shared<4>},
      {"ld.shared.v4.f32", load_shared<4>},
      {"st.shared.f32", store_shared<1>},
      {"st.shared.b32", store_shared<1>},
      {"st.shared.v2.f32", store_shared<2>},
      {"st.shared.v4.b32", store_shared<4>},
      {"st.shared.v4.f32", store_shared<4>},
      {"shfl.sync.bfly.b32",
       [](M m, I i, L lanes) {
         whole_warp(i, lanes);
         auto from = (*m.registers)[i.operands[1].reg];
         for (int l = 0; l < kLanes; ++l) m.set(i.operands[0], l, from[l ^ static_cast<int>(i.operands[2].value)]);
       }},
      {"shfl.sync.up.b32",
       [](M m, I i, L lanes) {
         whole_warp(i, lanes);
         auto from = (*m.registers)[i.operands[1].reg];
         for (int l = 0; l < kLanes; ++l) {
           int other = l - static_cast<int>(i.operands[2].value);
           m.set(i.operands[0], l, from[other < 0 ? l : other]);
         }
       }},
      {"shfl.sync.idx.b32",
       [](M m, I i, L lanes) {
         whole_warp(i, lanes);
         uint64_t from = (*m.registers)[i.operands[1].reg][static_cast<size_t>(i.operands[2].value)];
         for (int l = 0; l < kLanes; ++l) m.set(i.operands[0], l, from);
       }},
      {"mov.u32", word},
      {"mov.f32", word},
      {"mov.b16", [](M m, I i, L l) { unary(m, i, l, [](uint64_t v) { return v & 0xffff; }); }},
      {"mov.b32",
       [](M m, I i, L lanes) {
         each(lanes, [&](int l) {
           auto& r = *m.registers;
           if (i.operands[0].kind == Operand::List) {
             uint64_t v = m.get(i.operands[1], l);
             for (int k = 0; k < 2; ++k) r[i.operands[0].list[k]][l] = v >> 16 * k & 0xffff;
           } else if (i.operands[1].kind == Operand::List) {
             m.set(i.operands[0], l, r[i.operands[1].list[0]][l] | r[i.operands[1].list[1]][l] << 16);
           } else {
             m.set(i.operands[0], l, uint64_t{u(m.get(i.operands[1], l))});
           }
         });
       }},
      {"mov.b64",
       [](M m, I i, L lanes) {
         each(lanes, [&](int l) {
           auto& r = *m.registers;
           const Operand& from = i.operands[1];
           bool two = from.kind == Operand::List;
           m.set(i.operands[0], l, two ? u(r[from.list[0]][l]) | r[from.list[1]][l] << 32 : m.get(from, l));
         });
       }},
      {"not.pred", [](M m, I i, L l) { unary(m, i, l, [](uint64_t v) { return uint64_t{!v}; }); }},
      {"cvta.param.u64", [](M m, I i, L l) { unary(m, i, l, [](uint64_t v) { return v; }); }},
      {"cvt.u32.u64", word},
      {"cvt.u64.u32", word},
      {"cvt.f32.f16",
       [](M m, I i, L lanes) {
         each(lanes, [&](int l) { m.set(i.operands[0], l, part<Half>(u(m.get(i.operands[1], l)), 0)); });
       }},
      {"cvt.rn.f16x2.f32", round_two<Half>},
      {"cvt.rn.bf16x2.f32", round_two<BFloat16>},
      {"add.u32", [](M m, I i, L l) { binary(m, i, l, [](uint64_t a, uint64_t b) { return uint64_t{u(a + b)}; }); }},
      {"sub.u32", [](M m, I i, L l) { binary(m, i, l, [](uint64_t a, uint64_t b) { return uint64_t{u(a - b)}; }); }},
      {"mul.lo.u32", [](M m, I i, L l) { binary(m, i, l, [](uint64_t a, uint64_t b) { return uint64_t{u(a * b)}; }); }},
      {"div.u32", [](M m, I i, L l) { binary(m, i, l, [](uint64_t a, uint64_t b) { return uint64_t{u(a) / u(b)}; }); }},
      {"rem.u32", [](M m, I i, L l) { binary(m, i, l, [](uint64_t a, uint64_t b) { return uint64_t{u(a) % u(b)}; }); }},
      {"and.b32", bitwise<uint32_t, std::bit_and>},
      {"or.b32", bitwise<uint32_t, std::bit_or>},
      {"xor.b32", bitwise<uint32_t, std::bit_xor>},
      {"and.b64", bitwise<uint64_t, std::bit_and>},
      {"or.b64", bitwise<uint64_t, std::bit_or>},
      {"xor.b64", bitwise<uint64_t, std::bit_xor>},
      {"and.pred", bitwise<bool, std::bit_and>},
      {"or.pred", bitwise<bool, std::bit_or>},
      {"xor.pred", bitwise<bool, std::bit_xor>},
      {"shr.u32", shift_right<uint32_t>},
      {"shr.u64", shift_right<uint64_t>},
      {"shl.b32", shift_left<uint32_t>},
      {"shl.b64", shift_left<uint64_t>},
      {"popc.b32",
       [](M m, I i, L l) { unary(m, i, l, [](uint64_t v) { return uint64_t(std::popcount(u(v))); }); }},
      {"min.u32",
       [](M m, I i, L l) { binary(m, i, l, [](auto a, auto b) { return uint64_t{std::min(u(a), u(b))}; }); }},
      {"max.u32",
       [](M m, I i, L l) { binary(m, i, l, [](auto a, auto b) { return uint64_t{std::max(u(a), u(b))}; }); }},
      {"add.s64", [](M m, I i, L l) { binary(m, i, l, [](uint64_t a, uint64_t b) { return a + b; }); }},
      {"mul.lo.s64", [](M m, I i, L l) { binary(m, i, l, [](uint64_t a, uint64_t b) { return a * b; }); }},
      {"mul.wide.u32", [](M m, I i, L l) { binary(m, i, l, [](auto a, auto b) { return uint64_t{u(a)} * u(b); }); }},
      {"mad.lo.u32",
       [](M m, I i, L lanes) {
         each(lanes, [&](int l) {
           m.set(i.operands[0], l,
                 uint64_t{u(m.get(i.operands[1], l) * m.get(i.operands[2], l) + m.get(i.operands[3], l))});
         });
       }},
      {"mad.lo.s64",
       [](M m, I i, L lanes) {
         each(lanes, [&](int l) {
           m.set(i.operands[0], l, m.get(i.operands[1], l) * m.get(i.operands[2], l) + m.get(i.operands[3], l));
         });
       }},
      {"mad.wide.u32",
       [](M m, I i, L lanes) {
         each(lanes, [&](int l) {
           m.set(i.operands[0], l,
                 uint64_t{u(m.get(i.operands[1], l))} * u(m.get(i.operands[2], l)) + m.get(i.operands[3], l));
         });
       }},
      {"selp.b32", choose},
      {"selp.f32", choose},
      {"selp.b64",
       [](M m, I i, L lanes) {
         each(lanes, [&](int l) { m.set(i.operands[0], l, m.get(i.operands[m.get(i.operands[3], l) ? 1 : 2], l)); });
       }},
      {"setp.lt.u32", compare<uint32_t, std::less<>>},
      {"setp.le.u32", compare<uint32_t, std::less_equal<>>},
      {"setp.gt.u32", compare<uint32_t, std::greater<>>},
      {"setp.ge.u32", compare<uint32_t, std::greater_equal<>>},
      {"setp.eq.u32", compare<uint32_t, std::equal_to<>>},
      {"setp.ne.u32", compare<uint32_t, std::not_equal_to<>>},
      {"setp.lt.and.u32", compare<uint32_t, std::less<>>},
      {"setp.le.and.u32", compare<uint32_t, std::less_equal<>>},
      {"setp.eq.and.u32", compare<uint32_t, std::equal_to<>>},
      {"setp.lt.u64", compare<uint64_t, std::less<>>},
      {"setp.gt.u64", compare<uint64_t, std::greater<>>},
      {"setp.eq.u64", compare<uint64_t, std::equal_to<>>},
      {"setp.lt.f32", [](M m, I i, L l) { compare_floats(m, i, l, [](float a, float b) { return a < b; }); }},
      {"setp.neu.f32", [](M m, I i, L l) { compare_floats(m, i, l, [](float a, float b) { return a != b; }); }},
      {"add.f32", [](M m, I i, L l) { of_floats(m, i, l, std::plus<float>()); }},
      {"sub.f32", [](M m, I i, L l) { of_floats(m, i, l, std::minus<float>()); }},
      {"mul.f32", [](M m, I i, L l) { of_floats(m, i, l, std::multiplies<float>()); }},
      {"add.rn.f32", [](M m, I i, L l) { of_floats(m, i, l, std::plus<float>()); }},
      {"sub.rn.f32", [](M m, I i, L l) { of_floats(m, i, l, std::minus<float>()); }},
      {"div.rn.f32", [](M m, I i, L l) { of_floats(m, i, l, std::divides<float>()); }},
      {"mul.rn.f32", [](M m, I i, L l) { of_floats(m, i, l, std::multiplies<float>()); }},
      {"min.NaN.f32",
       [](M m, I i, L l) { of_floats(m, i, l, [](float a, float b) { return a != a || a < b ? a : b; }); }},
      {"max.NaN.f32",
       [](M m, I i, L l) { of_floats(m, i, l, [](float a, float b) { return a != a || a > b ? a : b; }); }},
      {"abs.f32", [](M m, I i, L l) { of_float(m, i, l, [](float a) { return std::fabs(a); }); }},
      {"rsqrt.approx.ftz.f32", [](M m, I i, L l) { of_float(m, i, l, [](float a) { return 1 / std::sqrt(a); }); }},
      {"max.f32", [](M m, I i, L l) { of_floats(m, i, l, [](float a, float b) { return std::fmax(a, b); }); }},
      {"neg.f32", [](M m, I i, L l) { of_float(m, i, l, std::negate<float>()); }},
      {"ex2.approx.ftz.f32", [](M m, I i, L l) { of_float(m, i, l, [](float a) { return std::exp2(a); }); }},
      {"lg2.approx.ftz.f32", [](M m, I i, L l) { of_float(m, i, l, [](float a) { return std::log2(a); }); }},
      {"rcp.approx.ftz.f32", [](M m, I i, L l) { of_float(m, i, l, [](float a) { return 1 / a; }); }},
      {"fma.rn.f32",
       [](M m, I i, L lanes) {
         each(lanes, [&](int l) {
           m.set(i.operands[0], l, std::fma(m.f(i.operands[1], l), m.f(i.operands[2], l), m.f(i.operands[3], l)));
         });
       }},
  });
  return all;
}

}  // namespace brasa::fakes
