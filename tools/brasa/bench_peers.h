#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace brasa::tool {

struct PeersOptions {
  std::string python = "python3", scripts, plot;
  std::vector<std::string> only;  // peers; none: all
  int rounds = 3;
  bool cpu_time = false;
  // Of `brasa bench` itself:
  std::vector<std::string> names, modes;  // no names: all workloads that a peer has
  double seconds = 1;
  uint64_t seed = 0;
  bool json = false;
};
void add_peers(CLI::App& bench, bool& peers, PeersOptions& o);

/// Brasa and what else runs the same workloads, in turn; prints a table. The exit status: 1 where a measurement of Brasa's failed.
int compare_with_peers(const PeersOptions& o);

}  // namespace brasa::tool
