#include "runtime/cpu/examine.h"

#include <brasa/threads.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <set>
#include <sstream>

#include "runtime/cpu/features.h"
#include "runtime/device.h"
#include "support/lazy.h"
#include "support/settings.h"
#include "support/str.h"

namespace brasa::runtime::cpu {
namespace {

using State = Finding::State;

// Of the first processor in /proc/cpuinfo.
std::string fact_of_processor(const std::string& key) {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);)
    if (size_t colon = line.find(':'); line.starts_with(key) && colon + 2 <= line.size()) return line.substr(colon + 2);
  return "unknown";
}

std::string features() {
  std::istringstream words(fact_of_processor("flags"));
  const std::set<std::string> there{std::istream_iterator<std::string>(words), {}};
  std::string out;
  for (const char* f : {"avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd", "avx512_bf16",
                        "avx512_fp16", "avx512_vnni", "amx_tile", "amx_bf16", "amx_int8"})
    if (there.count(f)) out += str(out.empty() ? "" : " ", f);
  return out.empty() ? "none that Brasa looks for" : out;
}

std::string caches() {
  std::string out;
  for (auto [name, size] :
       {std::pair{"L1d", _SC_LEVEL1_DCACHE_SIZE}, {"L2", _SC_LEVEL2_CACHE_SIZE}, {"L3", _SC_LEVEL3_CACHE_SIZE}})
    if (long bytes = sysconf(size); bytes > 0) out += str(out.empty() ? "" : ", ", name, ' ', bytes >> 10, " KiB");
  return out.empty() ? "sizes unknown" : out;
}

}  // namespace

const std::string& processor_model() {
  static constinit Lazy<std::string> model([] { return fact_of_processor("model name"); });
  return *model;
}

void examine(std::vector<Finding>& findings) {
  auto found = [&](const char* name, std::string value) {
    findings.push_back({"cpu", name, State::Found, std::move(value), "", ""});
  };
  found("processor", processor_model());
  found("features", features());
  Finding target{"cpu", "code", State::Found, "", "", ""};
  try {
    target.value = host_target();
    if (environment("BRASA_CPU_TARGET")) target.where = "BRASA_CPU_TARGET";
    if (target.value != machine_target())
      target.advice = str("this processor runs ", machine_target(), ": unset BRASA_CPU_TARGET for faster kernels");
  } catch (const Error& e) {
    target.state = State::Unusable;
    target.value = e.what();
    target.advice = "take one that the message names for BRASA_CPU_TARGET, or a machine with an x86-64 processor";
  }
  findings.push_back(target);
  found("caches", caches());
  found("threads", str(get_num_threads(), " of ", sysconf(_SC_NPROCESSORS_ONLN), " processors"));
  auto [free, whole] = host().memory();
  found("memory", str(free >> 20, " of ", whole >> 20, " MiB free"));
}

}  // namespace brasa::runtime::cpu
