#pragma once

#include <map>
#include <string>
#include <vector>

#include "ops/table.h"

namespace brasa::test {

/// What becomes of each extent that a sample's tensors have. Equal extents are taken for one size.
using Extents = std::map<int64_t, int64_t>;

struct Resized {
  std::string what;  // "3→0, 5→5"
  bool all;          // every size is another one
  ops::Sample sample;
};
/// The sample at other sizes: each extent alone and all at once as 0, 1, 2 and a prime, all doubled, and all as different primes.
/// Where the sample names a size as a number too, once with that number following and once without.
std::vector<Resized> at_other_sizes(const ops::Row& row, const ops::Sample& sample);

}  // namespace brasa::test
