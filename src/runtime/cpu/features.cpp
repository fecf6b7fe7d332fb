#include "runtime/cpu/features.h"

#include <iterator>

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "support/error.h"
#include "support/lazy.h"
#include "support/settings.h"

namespace brasa::runtime::cpu {
namespace {

// Levels in rising order; each includes the ones before.
constexpr std::string_view kLevels[] = {
    "x86-64", "x86-64+avx2", "x86-64+avx512", "x86-64+avx512+vnni", "x86-64+avx512+bf16", "x86-64+avx512+bf16+amx"};
constexpr int kAvx2 = 1, kAvx512 = 2, kVnni = 3, kBrain = 4, kTiles = 5;

// Of AMX: tiles, and products of bfloat16 and of bytes. The kernel keeps tiles for a process that asked for them, once for all threads;
// it refuses where a thread's stack for signals is too small for them.
bool has_tiles() {
#if defined(__x86_64__) && defined(__linux__)
  constexpr unsigned kNeeded = 1u << 24 | 1u << 22 | 1u << 25;  // tiles, bfloat16, bytes
  constexpr unsigned kSaved = 3u << 17;                         // in XCR0: the tiles' configuration and data
  constexpr int kAskForPermission = 0x1023, kTileData = 18;     // of arch_prctl
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE)) return false;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & kNeeded) != kNeeded) return false;
  unsigned low = 0, high = 0;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  if ((low & kSaved) != kSaved) return false;
  static constinit Lazy<bool> allowed([] { return ::syscall(SYS_arch_prctl, kAskForPermission, kTileData) == 0; });
  return *allowed;
#else
  return false;
#endif
}

// Without tiles.
int vector_level() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
              __builtin_cpu_supports("bmi2");
  if (!avx2) return 0;
  bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                __builtin_cpu_supports("avx512cd");
  if (!avx512) return kAvx2;
  if (!__builtin_cpu_supports("avx512vnni")) return kAvx512;
  return __builtin_cpu_supports("avx512bf16") ? kBrain : kVnni;
#else
  return -1;
#endif
}

// Tiles are asked for only where a level with them is: from then on the process may use them.
int machine_level() {
  int level = vector_level();
  return level == kBrain && has_tiles() ? kTiles : level;
}

// Intel's processors start one sum of pairs where they start two of single products: what is widened once is faster there.
int fastest_level() {
  int level = machine_level();
#if defined(__x86_64__)
  if (level == kBrain && __builtin_cpu_is("intel")) return kVnni;
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
  static constinit Lazy<std::string> target([] {
    const char* wanted = environment("BRASA_CPU_TARGET");
    if (!wanted) return std::string(machine_target());
    BRASA_CHECK(supports(wanted), "BRASA_CPU_TARGET='", wanted, "': this processor runs ",
                known_levels(machine_level()));
    return std::string(wanted);
  });
  return *target;
}

bool supports(std::string_view target) {
  int level = level_of(target);
  return level <= (level < kTiles ? vector_level() : machine_level());
}

}  // namespace brasa::runtime::cpu
