#include "runtime/cuda/epilogue.h"

#include <algorithm>
#include <utility>

#include "support/error.h"
#include "support/str.h"

namespace brasa::runtime::cuda {
namespace {

// And how many numbers it takes.
std::pair<const char*, int> instruction(Epilogue::Op op) {
  using Op = Epilogue::Op;
  switch (op) {
    case Op::Add: return {"add.rn.f32", 2};
    case Op::Sub: return {"sub.rn.f32", 2};
    case Op::Mul: return {"mul.rn.f32", 2};
    case Op::Div: return {"div.rn.f32", 2};
    case Op::Fma: return {"fma.rn.f32", 3};
    case Op::Min: return {"min.NaN.f32", 2};
    case Op::Max: return {"max.NaN.f32", 2};
    case Op::Abs: return {"abs.f32", 1};
    case Op::Neg: return {"neg.f32", 1};
    case Op::Exp2: return {"ex2.approx.ftz.f32", 1};
    case Op::Reciprocal: return {"rcp.approx.ftz.f32", 1};
    case Op::Rsqrt: return {"rsqrt.approx.ftz.f32", 1};
    case Op::And: return {"and.b32", 2};
    case Op::Xor: return {"xor.b32", 2};
    default: fail("a step of an epilogue that is no instruction");
  }
}

}  // namespace

size_t Epilogue::instructions() const {
  return static_cast<size_t>(
      std::count_if(steps.begin(), steps.end(), [](const Step& s) { return s.op != Op::Number; }));
}

std::string text_of(const Epilogue& epilogue) {
  std::string out = str(epilogue.operands, " to ", epilogue.results);
  for (const Epilogue::Step& s : epilogue.steps)
    out += str("; ", static_cast<int>(s.op), " ", s.of[0], " ", s.of[1], " ", s.of[2], " ", s.bits);
  return out;
}

Ptx::Regs computed(const Epilogue& epilogue, Ptx& text, const Ptx::Regs& operands) {
  using Op = Epilogue::Op;
  Ptx::Regs values = operands;
  for (const Epilogue::Step& s : epilogue.steps) {
    auto of = [&](int i) { return values.at(static_cast<size_t>(s.of[i])); };
    switch (s.op) {
      case Op::Number: values.push_back(text.f("mov.b32", s.bits)); break;
      case Op::Shl: values.push_back(text.f("shl.b32", of(0), s.bits)); break;
      case Op::Less: values.push_back(text.p("setp.lt.f32", of(0), of(1))); break;
      case Op::Select: values.push_back(text.f("selp.f32", of(1), of(2), of(0))); break;
      default: {
        auto [name, operands] = instruction(s.op);
        values.push_back(operands == 1   ? text.f(name, of(0))
                         : operands == 2 ? text.f(name, of(0), of(1))
                                         : text.f(name, of(0), of(1), of(2)));
      }
    }
  }
  Ptx::Regs out;
  for (int16_t r : epilogue.results) out.push_back(values.at(static_cast<size_t>(r)));
  return out;
}

}  // namespace brasa::runtime::cuda
