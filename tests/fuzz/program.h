#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace brasa::fuzz {

/// An operator and its operands, which are numbered from the youngest value, modulo how many there are.
struct Instruction {
  std::string op;
  int a = 0, b = 0, c = 0;
};

/// How a call's inputs share memory, and what the caller does with its results.
enum class Alias : uint8_t { None, Same, View, Transposed, Overlap, Stepped, Count };
enum class After : uint8_t { Nothing, Backward, Twice, Gradient, SecondDerivative, EachResult, Count };

struct Call {
  int function = 0;
  int rows = 3;
  int number = 0;  // in tenths
  Alias alias = Alias::None;
  After after = After::Nothing;
  bool gradient = false, leaf = true, hook = false, shared_tensor = false;
};

struct Program {
  bool single = false;  // precision
  std::vector<std::vector<Instruction>> functions;
  std::vector<Call> calls;
};

/// `sizes`: its first function is called at five sizes.
Program generate(uint32_t seed, bool sizes = false);

/// One line for each function and each call.
std::string text(const Program& p);
Program parse(std::string_view text);

/// The first difference between eager and compiled runs in all modes; nothing where there is none, or where eager refuses the program or
/// tiny changes of its inputs change its results. `backend` is CompileOptions::backend.
std::string difference(const Program& p, const std::string& backend);
/// Microseconds of a program's first call again and again, in turn as it is and compiled; absent where it ends with an error.
struct Times {
  double eager, compiled;
};
std::optional<Times> times(const Program& p);
/// What compiling cost at most in the runs of `difference` until now: see tests/compile_cost.h.
std::string compile_cost();
/// Whether eager runs it to its end.
bool accepted(const Program& p);

/// A smaller program with a difference too.
Program minimised(Program p, const std::string& backend);

}  // namespace brasa::fuzz
