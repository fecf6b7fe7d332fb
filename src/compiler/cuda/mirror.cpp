#include "compiler/cuda/mirror.h"

#include <algorithm>

namespace brasa::compiler {
namespace {

// Device pointers are aligned as the host's are, modulo this.
constexpr size_t kAlignment = 256;

size_t lead(const Mirror::Region& r) { return reinterpret_cast<uintptr_t>(r.begin) % kAlignment; }
size_t bytes(const Mirror::Region& r) { return static_cast<size_t>(r.end - r.begin); }

}  // namespace

Mirror::~Mirror() {
  for (Region& r : regions_)
    if (r.device) device_.deallocate(r.device - lead(r), bytes(r) + lead(r));
}

void Mirror::add(const Operand& o, bool written, bool fresh) {
  int64_t low = 0, high = 0, numel = 1;
  for (size_t d = 0; d < o.sizes.size(); ++d) {
    int64_t last = (o.sizes[d] - 1) * o.strides[d];
    numel *= o.sizes[d];
    (last < 0 ? low : high) += last;
  }
  data_.push_back(numel ? static_cast<const char*>(o.data) : nullptr);
  if (!numel) return;
  int64_t size = size_of(o.dtype);
  bool gaps = high - low + 1 != numel;
  regions_.push_back({data_.back() + low * size, data_.back() + (high + 1) * size, written, !fresh || gaps});
}

void Mirror::upload() {
  std::sort(regions_.begin(), regions_.end(), [](const Region& a, const Region& b) { return a.begin < b.begin; });
  std::vector<Region> merged;
  for (const Region& r : regions_) {
    if (merged.empty() || r.begin >= merged.back().end) {
      merged.push_back(r);
      continue;
    }
    Region& m = merged.back();
    m.end = std::max(m.end, r.end);
    m.written |= r.written;
    m.read = true;
  }
  regions_ = std::move(merged);
  for (Region& r : regions_) {
    r.device = static_cast<char*>(device_.allocate(bytes(r) + lead(r))) + lead(r);
    if (r.read) device_.copy_to_device(r.device, r.begin, bytes(r));
  }
}

const Mirror::Region* Mirror::region_of(size_t n) const {
  if (!data_[n]) return nullptr;
  auto it = std::upper_bound(regions_.begin(), regions_.end(), data_[n],
                             [](const char* p, const Region& r) { return p < r.begin; });
  return &*(it - 1);
}

void* Mirror::on_device(size_t n) const {
  const Region* r = region_of(n);
  return r ? r->device + (data_[n] - r->begin) : nullptr;
}

void Mirror::download() {
  for (const Region& r : regions_)
    if (r.written) device_.copy_to_host(const_cast<char*>(r.begin), r.device, bytes(r));
}

}  // namespace brasa::compiler
