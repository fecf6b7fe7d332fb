#include "runtime/allocator.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <set>
#include <unordered_map>
#include <vector>

#include "support/error.h"

namespace brasa::runtime {
namespace {

constexpr size_t kRound = 512;
constexpr size_t kSmall = size_t{1} << 20;  // of a request; larger ones have segments of their own kind
constexpr size_t kSmallSegment = size_t{2} << 20, kSegment = size_t{20} << 20, kSegmentRound = size_t{2} << 20;
// How often callbacks are asked again when they say that they freed something.
constexpr int kRounds = 8;

size_t rounded(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

struct Block;
struct BySize {
  bool operator()(const Block* a, const Block* b) const;
};
using FreeBlocks = std::set<Block*, BySize>;
using UsedBlocks = std::unordered_map<void*, Block*>;

struct Block {
  char* p = nullptr;
  size_t size = 0;
  Stream stream = {};
  bool small = false, free = false;
  Block *before = nullptr, *after = nullptr;  // in its segment
  std::vector<Stream> users = {};             // other streams
  // It brings them along from one container to the other, so that tensors that come and go ask for no memory of the host.
  FreeBlocks::node_type free_node = {};
  UsedBlocks::node_type used_node = {};
};

bool BySize::operator()(const Block* a, const Block* b) const {
  if (a->stream != b->stream) return a->stream < b->stream;
  return a->size != b->size ? a->size < b->size : a->p < b->p;
}

void add(Stat& s, int64_t n) {
  s.current += n;
  s.peak = std::max(s.peak, s.current);
  (n > 0 ? s.allocated : s.freed) += n > 0 ? n : -n;
}

std::string in_words(size_t bytes) {
  char text[32];
  if (bytes < 1024) return str(bytes, " bytes");
  bool large = bytes >= size_t{1} << 30;
  double unit = large ? 1 << 30 : bytes >= size_t{1} << 20 ? 1 << 20 : 1 << 10;
  std::snprintf(text, sizeof text, "%.2f %s", static_cast<double>(bytes) / unit,
                large         ? "GiB"
                : unit > 1024 ? "MiB"
                              : "KiB");
  return text;
}

}  // namespace

MemorySource::~MemorySource() = default;

struct Allocator::State {
  brasa::Device device;
  MemorySource& source;
  mutable std::mutex mutex;
  FreeBlocks small, large;
  UsedBlocks used;
  std::vector<std::unique_ptr<Block>> spare;                   // of which nothing but their nodes is used
  std::vector<std::pair<Block*, std::vector<Event>>> waiting;  // freed, while another stream's work still uses them
  DeviceStats stats;

  State(brasa::Device d, MemorySource& s) : device(d), source(s) {}
  FreeBlocks& pool(const Block& b) { return b.small ? small : large; }

  Block* new_block(char* p, size_t size, Stream stream, bool is_small) {
    std::unique_ptr<Block> b = spare.empty() ? std::make_unique<Block>() : std::move(spare.back());
    if (!spare.empty()) spare.pop_back();
    b->p = p;
    b->size = size;
    b->stream = stream;
    b->small = is_small;
    return b.release();
  }
  void drop(Block* b) {
    b->free = false;
    b->before = b->after = nullptr;
    spare.emplace_back(b);
  }
  void add_free(Block* b) {
    b->free = true;
    b->free_node.empty() ? void(pool(*b).insert(b)) : void(pool(*b).insert(std::move(b->free_node)));
  }
  void take_free(Block* b) {
    b->free_node = pool(*b).extract(b);
    b->free = false;
  }

  Block* find(size_t size, Stream stream) {
    Block key{nullptr, size, stream, size <= kSmall};
    auto& blocks = pool(key);
    auto it = blocks.lower_bound(&key);
    if (it == blocks.end() || (*it)->stream != stream) return nullptr;
    Block* b = *it;
    take_free(b);
    if (is_part(*b)) count_split(*b, -1);
    return b;
  }

  Block* new_segment(size_t size, Stream stream) {
    bool is_small = size <= kSmall;
    size_t wanted = is_small ? kSmallSegment : size < kSegment / 2 ? kSegment : rounded(size, kSegmentRound);
    void* p = source.take(wanted);
    if (!p && wanted > rounded(size, kSegmentRound)) p = source.take(wanted = rounded(size, kSegmentRound));
    if (!p) return nullptr;
    add(stats.segment, 1);
    add(stats.reserved_bytes, static_cast<int64_t>(wanted));
    return new_block(static_cast<char*>(p), wanted, stream, is_small);
  }

  static bool is_part(const Block& b) { return b.before || b.after; }
  void count_split(const Block& b, int sign) {
    add(stats.inactive_split, sign);
    add(stats.inactive_split_bytes, sign * static_cast<int64_t>(b.size));
  }

  void* hand_out(Block* b, size_t size) {
    size_t rest = b->size - size;
    if (rest >= (b->small ? kRound : kSmall + 1)) {
      Block* r = new_block(b->p + size, rest, b->stream, b->small);
      r->before = b;
      r->after = b->after;
      if (b->after) b->after->before = r;
      b->after = r;
      b->size = size;
      add_free(r);
      count_split(*r, 1);
    }
    if (b->used_node.empty()) {
      used.emplace(b->p, b);
    } else {
      b->used_node.key() = b->p;
      used.insert(std::move(b->used_node));
    }
    for (Stat* s : {&stats.allocation, &stats.active}) add(*s, 1);
    for (Stat* s : {&stats.allocated_bytes, &stats.active_bytes}) add(*s, static_cast<int64_t>(b->size));
    return b->p;
  }

  void make_free(Block* b) {
    add(stats.active, -1);
    add(stats.active_bytes, -static_cast<int64_t>(b->size));
    auto absorb = [&](Block* other) {
      if (!other || !other->free) return;
      take_free(other);
      count_split(*other, -1);
      if (other == b->before) {
        b->p = other->p;
        b->before = other->before;
        if (b->before) b->before->after = b;
      } else {
        b->after = other->after;
        if (b->after) b->after->before = b;
      }
      b->size += other->size;
      drop(other);
    };
    absorb(b->before);
    absorb(b->after);
    add_free(b);
    if (is_part(*b)) count_split(*b, 1);
  }

  void look_at_waiting() {
    std::erase_if(waiting, [&](auto& w) {
      std::erase_if(w.second, [&](Event e) { return source.reached(e); });
      if (!w.second.empty()) return false;
      make_free(w.first);
      return true;
    });
  }

  void give_back() {
    source.finish();
    look_at_waiting();
    for (auto* blocks : {&small, &large})
      for (auto it = blocks->begin(); it != blocks->end();) {
        Block* b = *it;
        if (is_part(*b)) {
          ++it;
          continue;
        }
        source.give_back(b->p, b->size);
        add(stats.segment, -1);
        add(stats.reserved_bytes, -static_cast<int64_t>(b->size));
        ++it;
        take_free(b);
        drop(b);
      }
  }

  [[noreturn]] void out_of_memory(size_t bytes) {
    ++stats.num_ooms;
    auto [free, whole] = source.room();
    size_t largest = 0;
    for (auto* blocks : {&small, &large})
      for (const Block* b : *blocks) largest = std::max(largest, b->size);
    size_t held = static_cast<size_t>(stats.allocated_bytes.current),
           kept = static_cast<size_t>(stats.reserved_bytes.current) - held;
    throw OutOfMemoryError(str("out of memory on device '", device.str(), "': ", in_words(bytes),
                               " were asked for; of ", in_words(whole), " it has ", in_words(free),
                               " free, tensors hold ", in_words(held), ", and ", in_words(kept),
                               " are kept for reuse, in which the largest block has ", in_words(largest)));
  }
};

Allocator::Allocator(brasa::Device device, MemorySource& source) : s_(std::make_unique<State>(device, source)) {}
Allocator::~Allocator() = default;

void* Allocator::allocate(size_t bytes, Stream stream) {
  if (bytes == 0) return nullptr;
  State& s = *s_;
  std::unique_lock lock(s.mutex);
  if (bytes >= size_t{1} << 47) s.out_of_memory(bytes);
  size_t size = rounded(bytes, kRound);
  s.look_at_waiting();
  auto attempt = [&] {
    Block* b = s.find(size, stream);
    return b ? b : s.new_segment(size, stream);
  };
  Block* b = attempt();
  if (!b) {
    ++s.stats.num_alloc_retries;
    s.give_back();
    b = attempt();
  }
  for (int round = 0; !b && round < kRounds; ++round) {
    lock.unlock();  // callbacks free tensors
    bool freed = false;
    try {
      freed = ask_for_memory(s.device, bytes);
    } catch (const Error&) {
      throw;
    } catch (const std::exception& e) {
      fail(str("a callback for missing memory of device '", s.device.str(), "' failed: ", e.what()));
    }
    lock.lock();
    if (!freed) break;
    s.give_back();
    b = attempt();
  }
  if (!b) s.out_of_memory(bytes);
  return s.hand_out(b, size);
}

void Allocator::deallocate(void* p) {
  if (!p) return;
  State& s = *s_;
  std::lock_guard lock(s.mutex);
  auto it = s.used.find(p);
  BRASA_ASSERT(it != s.used.end(), "memory is freed that is not in use");
  Block* b = it->second;
  b->used_node = s.used.extract(it);
  add(s.stats.allocation, -1);
  add(s.stats.allocated_bytes, -static_cast<int64_t>(b->size));
  if (b->users.empty()) return s.make_free(b);
  std::vector<Event> events;
  for (Stream user : b->users) events.push_back(s.source.mark(user));
  b->users.clear();
  s.waiting.emplace_back(b, std::move(events));
}

void Allocator::record_stream(void* p, Stream stream) {
  State& s = *s_;
  std::lock_guard lock(s.mutex);
  auto it = s.used.find(p);
  if (it == s.used.end()) return;
  Block& b = *it->second;
  if (stream != b.stream && std::find(b.users.begin(), b.users.end(), stream) == b.users.end())
    b.users.push_back(stream);
}

void Allocator::empty_cache() {
  std::lock_guard lock(s_->mutex);
  s_->give_back();
}

DeviceStats Allocator::statistics() const {
  std::lock_guard lock(s_->mutex);
  return s_->stats;
}

void Allocator::reset_peaks() {
  std::lock_guard lock(s_->mutex);
  DeviceStats& d = s_->stats;
  for (Stat* s : {&d.allocation, &d.segment, &d.active, &d.inactive_split, &d.allocated_bytes, &d.reserved_bytes,
                  &d.active_bytes, &d.inactive_split_bytes})
    s->peak = s->current;
}

}  // namespace brasa::runtime
