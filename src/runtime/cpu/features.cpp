#include "runtime/cpu/features.h"

#include "support/error.h"
#include "support/settings.h"

namespace brasa::runtime::cpu {
namespace {

// Levels in rising order; each includes the ones before.
constexpr std::string_view kLevels[] = {"x86-64", "x86-64+avx2", "x86-64+avx512"};

int machine_level() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
              __builtin_cpu_supports("bmi2");
  if (!avx2) return 0;
  bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                __builtin_cpu_supports("avx512cd");
  return avx512 ? 2 : 1;
#else
  return -1;
#endif
}

int level_of(std::string_view target) {
  for (int i = 0; i < 3; ++i)
    if (kLevels[i] == target) return i;
  return 100;
}

}  // namespace

const std::string& host_target() {
  static const std::string target = [] {
    int level = machine_level();
    BRASA_CHECK(level >= 0, "this processor is not supported: Brasa generates code for x86-64");
    if (const char* wanted = environment("BRASA_CPU_TARGET")) {
      BRASA_CHECK(level_of(wanted) <= level, "BRASA_CPU_TARGET='", wanted, "': this processor runs x86-64",
                  level > 0 ? ", x86-64+avx2" : "", level > 1 ? ", x86-64+avx512" : "");
      return std::string(wanted);
    }
    return std::string(kLevels[level]);
  }();
  return target;
}

bool supports(std::string_view target) { return level_of(target) <= machine_level(); }

}  // namespace brasa::runtime::cpu
