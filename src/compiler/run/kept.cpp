#include "compiler/run/kept.h"

#include <algorithm>
#include <utility>

namespace brasa::compiler {

bool KeptRun::is_for(runtime::Stream stream, std::span<const int64_t> symbols) const {
  return stream == stream_ && std::equal(symbols.begin(), symbols.end(), symbols_.begin(), symbols_.end());
}

bool KeptRun::met(const std::optional<std::vector<uint64_t>>& contents) {
  return std::exchange(contents_, contents) == contents && contents;
}

void KeptRun::read(std::shared_ptr<const PreparedValues::Made> prepared) {
  if (prepared != prepared_) work_ = nullptr;
  prepared_ = std::move(prepared);
}

void KeptRun::launch(const runtime::Launch& launch, runtime::Stream stream) {
  std::span<const runtime::Slot> slots = launch.slots;
  if (recording_) {
    size_t before = keeper_.launches_kept();
    device_.launch(launch, stream);
    bool empty = keeper_.launches_kept() == before;
    launches_.push_back({empty ? std::nullopt : std::optional(before), {slots.begin(), slots.end()}});
    return;
  }
  Kept& kept = launches_[next_++];
  if (!kept.number || std::equal(slots.begin(), slots.end(), kept.slots.begin(), kept.slots.end())) return;
  work_->change(*kept.number, launch);
  kept.slots.assign(slots.begin(), slots.end());
}

void KeptRun::call(std::span<const int> buffers, std::span<void* const> operands) {
  if (recording_) {
    calls_.emplace_back(operands.begin(), operands.end());
    return;
  }
  const std::vector<void*>& known = calls_[next_call_++];
  for (size_t i = 0; i < operands.size(); ++i)
    if (operands[i] != known[i]) moved_.push_back(buffers[i]);
}

bool KeptRun::walked_with(std::span<const runtime::Slot> given) {
  if (!recorded() || !given_ || !std::equal(given.begin(), given.end(), given_->begin(), given_->end())) return false;
  if (messages_) device_.expect(stream_, messages_, first_check_);
  return true;
}

void KeptRun::begin_walk() {
  given_.reset();  // until the end: an error may come between
  next_ = next_call_ = 0;
  moved_.clear();
}

std::vector<int> KeptRun::end_walk(std::span<const runtime::Slot> given) {
  given_.emplace(given.begin(), given.end());
  std::sort(moved_.begin(), moved_.end());
  moved_.erase(std::unique(moved_.begin(), moved_.end()), moved_.end());
  if (!moved_.empty()) work_ = nullptr;
  return std::exchange(moved_, {});
}

std::shared_ptr<KeptRun> KeptRuns::find(runtime::Device& device, runtime::KeepsWork& keeper, runtime::Stream stream,
                                        std::span<const int64_t> symbols) {
  std::lock_guard lock(mutex_);
  auto it = std::find_if(runs_.begin(), runs_.end(), [&](const auto& r) { return r->is_for(stream, symbols); });
  if (it == runs_.end()) {
    if (runs_.size() == kMost) runs_.pop_back();
    runs_.push_front(std::make_shared<KeptRun>(device, keeper, stream, symbols));
    return nullptr;
  }
  runs_.splice(runs_.begin(), runs_, it);
  return *it;
}

}  // namespace brasa::compiler
