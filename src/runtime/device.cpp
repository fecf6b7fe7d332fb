#include "runtime/device.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <vector>

#include "runtime/float32_products.h"
#include "support/error.h"
#include "support/lazy.h"
#include "support/mutex.h"
#include "support/settings.h"
#include "support/thread_object.h"

namespace brasa::runtime {

extern const DeviceRow* const kDeviceRows[];
extern const size_t kDeviceRowCount;

namespace {

// Rows come and never go, so that readers need no lock.
struct Table {
  static constexpr size_t kMost = 16;
  std::array<const DeviceRow*, kMost> rows{};
  std::atomic<size_t> count;
  Mutex mutex;
  Table() : count(kDeviceRowCount) { std::copy_n(kDeviceRows, kDeviceRowCount, rows.begin()); }
  static Table& get() {
    static constinit Lazy<Table> table;
    return *table;
  }
};

// A device with a number below 16 of a row: its place in lists that each thread has.
constexpr size_t kIndices = 16;
size_t slot_of(brasa::Device d) {
  auto rows = device_rows();
  for (size_t r = 0; r < rows.size(); ++r)
    if (rows[r]->type == d.type()) return r * kIndices + static_cast<size_t>(std::max<int8_t>(d.index(), 0)) % kIndices;
  return 0;
}
using Streams = ThreadObject<std::array<Stream, Table::kMost * kIndices>>;  // those that are current
thread_local std::array<int8_t, Table::kMost> t_indices{};

int8_t& current_index(const DeviceRow& row) {
  auto rows = device_rows();
  return t_indices[static_cast<size_t>(std::find(rows.begin(), rows.end(), &row) - rows.begin())];
}

struct Callbacks {
  Mutex mutex;
  std::vector<std::pair<int, MemoryCallback>> list;
  int next = 1;
  static Callbacks& get() {
    static constinit Lazy<Callbacks> c;
    return *c;
  }
};

}  // namespace

Module::~Module() = default;
Device::~Device() = default;
bool Device::has(DType) const { return true; }
void Device::record_stream(void*, Stream) {}
void* Device::allocate_pinned(size_t bytes) { return host().allocate(bytes, kDefaultStream); }
void Device::deallocate_pinned(void* p, size_t bytes) { host().deallocate(p, bytes, kDefaultStream); }
Stream Device::make_stream(bool) { return kDefaultStream; }
void Device::destroy_stream(Stream) {}
Event Device::record(Stream) { return 0; }
void Device::wait(Stream, Event) {}
bool Device::done(Event) { return true; }
void Device::synchronize_event(Event) {}
TimeMark::~TimeMark() = default;
bool TimeMark::reached() const { return true; }
void TimeMark::wait() const {}
void TimeMark::hold(Device&, Stream) const {}
namespace {
struct HostMark final : TimeMark {
  using Clock = std::chrono::steady_clock;
  Clock::time_point at = Clock::now();
  double since(const TimeMark& earlier) const override {
    return std::chrono::duration<double, std::milli>(at - static_cast<const HostMark&>(earlier).at).count();
  }
};
}  // namespace
std::unique_ptr<TimeMark> Device::mark_time(Stream stream, bool) {
  if (!on_host()) synchronize(stream);
  return std::make_unique<HostMark>();
}
void* Device::native_stream(Stream) { return nullptr; }
void* Device::error_word() { return nullptr; }
Slot Device::expect(Stream, Messages, Slot) { return 0; }
bool Device::idle(Stream) { return true; }

std::span<const DeviceRow* const> device_rows() {
  Table& t = Table::get();
  return {t.rows.data(), t.count.load(std::memory_order_acquire)};
}

void add_device_row(const DeviceRow& row) {
  Table& t = Table::get();
  std::lock_guard lock(t.mutex);
  size_t n = t.count.load();
  BRASA_CHECK(n < Table::kMost && !find_device_row(row.name) && !find_device_row(row.type), "device '", row.name,
              "': its name or type is taken, or the table is full");
  t.rows[n] = &row;
  t.count.store(n + 1, std::memory_order_release);
}

const DeviceRow* find_device_row(DeviceType type) {
  for (const DeviceRow* row : device_rows())
    if (row->type == type) return row;
  return nullptr;
}
const DeviceRow* find_device_row(std::string_view name) {
  for (const DeviceRow* row : device_rows())
    if (row->name == name) return row;
  return nullptr;
}

Device& host() {
  static constinit Lazy<Device&> device([]() -> auto& { return kDeviceRows[0]->device(0); });
  return *device;
}

Device& device_of(brasa::Device device) {
  const DeviceRow* row = find_device_row(device.type());
  if (row == device_rows()[0] && device.index() <= 0) return host();
  BRASA_CHECK(row, "device '", device.str(), "': Brasa has no such devices");
  int count = row->count(), index = device.has_index() ? device.index() : current_index(*row);
  BRASA_CHECK(count > 0, "device '", device.str(),
              "' is not there: ", row->why_none ? row->why_none() : std::string("there are none of this kind"));
  BRASA_CHECK(index < count, "device '", device.str(), "' is not there: this machine has ", count, " of them, from '",
              row->name, ":0' to '", row->name, ":", count - 1, "'");
  return row->device(index);
}

Device& pinning_device() {
  for (const DeviceRow* row : device_rows().subspan(1))
    if (row->count() > 0) return device_of(brasa::Device(row->type));
  return host();
}

namespace {
Stream stream_at(size_t slot) {
  auto* streams = Streams::get();
  return streams ? (*streams)[slot] : kDefaultStream;
}
void set_stream_at(size_t slot, Stream stream) {
  if (auto* streams = Streams::get()) (*streams)[slot] = stream;
}
}  // namespace

Stream current_stream(const Device& device) { return device.on_host() ? 0 : stream_at(slot_of(device.id())); }

void set_current_stream(const Device& device, Stream stream) { set_stream_at(slot_of(device.id()), stream); }

Stream stream_from_pool(Device& device, bool urgent) {
  constexpr size_t kStreams = 32;
  struct Pool {
    std::vector<Stream> streams;
    size_t next = 0;
  };
  static constinit Mutex mutex;
  static constinit Lazy<std::map<std::pair<const Device*, bool>, Pool>> pools;  // for ever: work may end late
  std::lock_guard lock(mutex);
  Pool& pool = (*pools)[{&device, urgent}];
  if (pool.streams.size() < kStreams) pool.streams.push_back(device.make_stream(urgent));
  return pool.streams[pool.next++ % kStreams];
}

void chain(Device& device, Stream before, Stream after) {
  if (before != after) device.mark_time(before, false)->hold(device, after);
}

StreamScope::StreamScope(Device& device, Stream stream) : slot_(slot_of(device.id())), before_(stream_at(slot_)) {
  set_stream_at(slot_, stream);
}
StreamScope::~StreamScope() { set_stream_at(slot_, before_); }

bool ask_for_memory(brasa::Device device, size_t bytes) {
  Callbacks& c = Callbacks::get();
  std::vector<std::pair<int, MemoryCallback>> list;
  {
    std::lock_guard lock(c.mutex);
    list = c.list;
  }
  bool freed = false;
  for (auto& [handle, callback] : list) freed = callback(device, bytes) || freed;
  return freed;
}

std::atomic<int64_t>& host_steps() {
  static std::atomic<int64_t> steps{0};
  return steps;
}

}  // namespace brasa::runtime

namespace brasa {

namespace {
// Packed into one number, so that reading it costs nothing; 0: not asked for yet.
std::atomic<uint32_t> g_default{0};
uint32_t packed(Device d) {
  return static_cast<uint8_t>(d.type()) | static_cast<uint32_t>(d.index() + 1) << 8 | 1u << 31;
}
}  // namespace

Device get_default_device() {
  uint32_t p = g_default.load(std::memory_order_relaxed);
  if (p == 0) [[unlikely]] {
    const char* name = environment("BRASA_DEVICE");
    p = packed(name && *name ? runtime::device_of(Device(std::string_view(name))).id() : Device(kCPU));
    g_default.store(p);
  }
  return Device(static_cast<DeviceType>(p & 0xff), static_cast<int8_t>((p >> 8 & 0xff) - 1));
}
void set_default_device(Device device) { g_default.store(packed(runtime::device_of(device).id())); }

int device_count(DeviceType type) {
  const runtime::DeviceRow* row = runtime::find_device_row(type);
  return row ? row->count() : 0;
}
bool is_available(Device device) { return device_count(device.type()) > std::max<int>(device.index(), 0); }
Device resolved(Device device) { return runtime::device_of(device).id(); }

DeviceProperties get_device_properties(Device device) {
  const runtime::Properties& p = runtime::device_of(device).properties();
  return {p.limits, p.name, p.memory, p.processors};
}

namespace {
void make_current(Device there) {
  runtime::current_index(*runtime::find_device_row(there.type())) = std::max<int8_t>(there.index(), 0);
}
}  // namespace
void set_current_device(Device device) { make_current(resolved(device)); }
DeviceGuard::DeviceGuard(Device device) : original_(device), current_(resolved(device)) {
  original_ = resolved(Device(device.type()));
  make_current(current_);
}
DeviceGuard::~DeviceGuard() { make_current(original_); }
void DeviceGuard::set_device(Device device) {
  Device next = resolved(device);
  if (next.type() != original_.type()) {
    make_current(original_);
    original_ = resolved(Device(next.type()));
  }
  current_ = next;
  make_current(current_);
}

namespace {
const char* const kPrecisions[] = {"highest", "high", "medium"};
std::atomic<int> g_precision = 0;
}  // namespace
void set_float32_matmul_precision(const std::string& precision) {
  const auto* found = std::find(std::begin(kPrecisions), std::end(kPrecisions), precision);
  BRASA_CHECK(found != std::end(kPrecisions), "set_float32_matmul_precision: expected highest, high or medium, got '",
              precision, "'");
  g_precision = static_cast<int>(found - kPrecisions);
  runtime::float32_products_in_tf32() = g_precision > 0;
}
std::string get_float32_matmul_precision() { return kPrecisions[g_precision]; }

void synchronize(Device device) { runtime::device_of(device).synchronize(); }
DeviceStats memory_stats(Device device) { return runtime::device_of(device).statistics(); }
void reset_peak_memory_stats(Device device) { runtime::device_of(device).reset_peaks(); }
void empty_cache(Device device) { runtime::device_of(device).empty_cache(); }
std::pair<size_t, size_t> mem_get_info(Device device) { return runtime::device_of(device).memory(); }

int add_memory_callback(MemoryCallback callback) {
  auto& c = runtime::Callbacks::get();
  std::lock_guard lock(c.mutex);
  c.list.emplace_back(c.next, std::move(callback));
  return c.next++;
}
void remove_memory_callback(int handle) {
  auto& c = runtime::Callbacks::get();
  std::lock_guard lock(c.mutex);
  std::erase_if(c.list, [&](const auto& item) { return item.first == handle; });
}

}  // namespace brasa
