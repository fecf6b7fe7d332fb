#include "compiler/run/kept.h"

#include <algorithm>
#include <utility>

namespace brasa::compiler {

bool KeptRun::is_for(runtime::Stream stream, std::span<const int64_t> symbols) const {
  return stream == stream_ && std::equal(symbols.begin(), symbols.end(), symbols_.begin(), symbols_.end());
}

bool KeptRun::met(const PreparedValues::Contents& contents, PreparedValues::Contents after) {
  return std::exchange(contents_, std::move(after)) == contents && contents;
}

void KeptRun::read(std::shared_ptr<const PreparedValues::Made> prepared) {
  if (prepared != prepared_) work_.clear();
  prepared_ = std::move(prepared);
}

void KeptRun::record(size_t arena_bytes, const std::function<void(runtime::Stream)>& walk) {
  launches_.clear();
  calls_.clear();
  work_.clear();
  ++records_;
  runtime::Stream keeping = keeper_.begin_keeping(stream_);
  recording_ = true;
  try {
    {
      Memory arena(device_, arena_bytes, keeping);
      arena_ = arena.data;
      walk(keeping);
    }
    recording_ = false;
    work_.push_back(keeper_.end_keeping());
  } catch (...) {
    work_.clear();
    if (std::exchange(recording_, false)) try {
        keeper_.end_keeping();
      } catch (const Error&) {
        // The first error is the reason.
      }
    throw;
  }
}

void KeptRun::end_first_part() {
  if (!recording_) return;
  recording_ = false;  // until there is another one to end
  work_.push_back(keeper_.end_keeping());
  keeper_.begin_keeping(stream_);
  recording_ = true;
}

std::optional<KeptRun::Begun> KeptRun::begin(std::span<const runtime::Slot> given) {
  bool same = given_ && given_->size() >= given.size() && std::equal(given.begin(), given.end(), given_->begin());
  if (!same || refused_ || work_.size() < 2 || !copies_.empty()) return std::nullopt;
  std::lock_guard lock(work_[0]->mutex());
  work_[0]->run(stream_);
  return Begun{this, records_, work_[0]->runs()};
}

void KeptRun::run(const std::optional<Begun>& begun) {
  std::lock_guard lock(work_[0]->mutex());
  bool counts = begun && begun->run == this && begun->record == records_ && begun->runs == work_[0]->runs();
  for (size_t part = counts ? 1 : 0; part < work_.size(); ++part) work_[part]->run(stream_);
}

void KeptRun::launch(const runtime::Launch& launch, runtime::Stream stream) {
  std::span<const runtime::Slot> slots = launch.slots;
  if (recording_) {
    size_t before = keeper_.launches_kept();
    device_.launch(launch, stream);
    bool empty = keeper_.launches_kept() == before;
    launches_.push_back({work_.size(), empty ? std::nullopt : std::optional(before), {slots.begin(), slots.end()}});
    return;
  }
  Kept& kept = launches_[next_++];
  if (!kept.number || std::equal(slots.begin(), slots.end(), kept.slots.begin(), kept.slots.end())) return;
  work_[kept.part]->change(*kept.number, launch);
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
  if (!moved_.empty()) work_.clear();
  return std::exchange(moved_, {});
}

std::shared_ptr<KeptRun> KeptRuns::known(runtime::Stream stream) {
  std::lock_guard lock(mutex_);
  auto it = std::find_if(runs_.begin(), runs_.end(), [&](const auto& r) { return r->is_for(stream, {}); });
  return it == runs_.end() ? nullptr : *it;
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
