#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace brasa::tool {

struct SweepOptions {
  std::string vectors;  // a folder of reference vectors, from which calls are drawn
  std::string calls;    // instead: a file of calls, "-" for standard input
  std::vector<std::string> only;
  std::string backend = "eager", device = "cpu";
  uint64_t seed = 0;
  size_t draws = 100;
  bool gradients = false, cpu_time = false, profile = false;
  double milliseconds = 2, seconds = 0.1;
};
void add_sweep(CLI::App& bench, bool& operators, SweepOptions& o);

/// Times operators, a line of JSON each: the call, and the least milliseconds. The exit status.
int sweep(const SweepOptions& o);

}  // namespace brasa::tool
