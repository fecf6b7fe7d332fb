#include "compiler/run/host_copies.h"

#include <algorithm>

namespace brasa::compiler {

HostCopies::HostCopies(runtime::Device& device) : device_(device), stream_(runtime::current_stream(device)) {}

void HostCopies::add(const Operand& o, bool written) {
  int64_t low = 0, high = 0, numel = 1;
  for (size_t d = 0; d < o.sizes.size(); ++d) {
    int64_t last = (o.sizes[d] - 1) * o.strides[d];
    numel *= o.sizes[d];
    (last < 0 ? low : high) += last;
  }
  data_.push_back(numel ? static_cast<const char*>(o.data) : nullptr);
  int64_t size = size_of(o.dtype);
  if (data_.back()) regions_.push_back({data_.back() + low * size, data_.back() + (high + 1) * size, written});
}

void HostCopies::fetch() {
  std::sort(regions_.begin(), regions_.end(), [](const Region& a, const Region& b) { return a.begin < b.begin; });
  std::vector<Region> merged;
  for (const Region& r : regions_) {
    if (merged.empty() || r.begin >= merged.back().end) {
      merged.push_back(r);
      continue;
    }
    merged.back().end = std::max(merged.back().end, r.end);
    merged.back().written |= r.written;
  }
  regions_ = std::move(merged);
  for (Region& r : regions_) {
    r.host.resize(static_cast<size_t>(r.end - r.begin));
    device_.download(r.host.data(), r.begin, r.host.size(), stream_);
  }
}

void* HostCopies::data(size_t n) const {
  if (!data_[n]) return nullptr;
  auto it = std::upper_bound(regions_.begin(), regions_.end(), data_[n],
                             [](const char* p, const Region& r) { return p < r.begin; });
  const Region& r = *(it - 1);
  return const_cast<char*>(r.host.data()) + (data_[n] - r.begin);
}

void HostCopies::store() {
  for (const Region& r : regions_)
    if (r.written) device_.upload(const_cast<char*>(r.begin), r.host.data(), r.host.size(), stream_);
}

}  // namespace brasa::compiler
