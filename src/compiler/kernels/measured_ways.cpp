#include "compiler/kernels/measured_ways.h"

#include <charconv>
#include <mutex>

#include "compiler/kernels/disk_cache.h"
#include "support/hash.h"
#include "support/str.h"

namespace brasa::compiler {

void MeasuredWays::begin(const std::string& what) {
  std::lock_guard lock(mutex_);
  if (!begun_) {
    end_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds_));
    progress_ = std::make_unique<ProgressBar>(calls_, /*lines=*/false);
  }
  if (progress_) progress_->next(str("measuring ", what));
  if (++begun_ == calls_) progress_.reset();
}

std::string MeasuredWays::name_of(const std::string& key) const {
  const runtime::Properties& at = device_.properties();
  return "t" + hash_name(str(at.name, "\n", at.code, " ", at.processors, "\n", key));
}

std::optional<size_t> MeasuredWays::kept(const std::string& key) {
  std::optional<std::string> text = DiskCache::get().read(name_of(key));
  if (!text) return std::nullopt;
  size_t way = 0;
  auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), way);
  if (error != std::errc() || end != text->data() + text->size()) return std::nullopt;
  return way;
}

void MeasuredWays::keep(const std::string& key, size_t way) { DiskCache::get().write(name_of(key), str(way)); }

bool MeasuredWays::has_time() {
  std::lock_guard lock(mutex_);
  return Clock::now() < end_;
}

}  // namespace brasa::compiler
