#include "runtime/cpu/features.h"

#include <iterator>

#include "support/error.h"
#include "support/settings.h"

namespace brasa::runtime::cpu {
namespace {

// Levels in rising order; each includes the ones before.
constexpr std::string_view kLevels[] = {"x86-64", "x86-64+avx2", "x86-64+avx512", "x86-64+avx512+bf16"};

int machine_level() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
              __builtin_cpu_supports("bmi2");
  if (!avx2) return 0;
  bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                __builtin_cpu_supports("avx512cd");
  return !avx512 ? 1 : __builtin_cpu_supports("avx512bf16") ? 3 : 2;
#else
  return -1;
#endif
}

// Intel's processors start one sum of pairs where they start two of single products: what is widened once is faster there.
int fastest_level() {
  int level = machine_level();
#if defined(__x86_64__)
  if (level == 3 && __builtin_cpu_is("intel")) return 2;
#endif
  return level;
}

int level_of(std::string_view target) {
  for (size_t i = 0; i < std::size(kLevels); ++i)
    if (kLevels[i] == target) return static_cast<int>(i);
  return 100;
}

std::string known_levels(int highest) {
  std::string out;
  for (int i = 0; i <= highest; ++i) out += str(i ? ", " : "", kLevels[i]);
  return out;
}

}  // namespace

std::string_view machine_target() {
  int level = fastest_level();
  BRASA_CHECK(level >= 0, "this processor is not supported: Brasa generates code for x86-64");
  return kLevels[level];
}

const std::string& host_target() {
  static const std::string target = [] {
    std::string_view fastest = machine_target();
    const char* wanted = environment("BRASA_CPU_TARGET");
    if (!wanted) return std::string(fastest);
    BRASA_CHECK(supports(wanted), "BRASA_CPU_TARGET='", wanted, "': this processor runs ",
                known_levels(machine_level()));
    return std::string(wanted);
  }();
  return target;
}

bool supports(std::string_view target) { return level_of(target) <= machine_level(); }

}  // namespace brasa::runtime::cpu
