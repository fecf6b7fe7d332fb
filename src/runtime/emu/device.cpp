#include "runtime/emu/device.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "runtime/cpu/code.h"
#include "runtime/cpu/features.h"
#include "runtime/cpu/launch.h"
#include "runtime/emu/inject.h"
#include "runtime/emu/memory.h"
#include "runtime/emu/native_stream.h"
#include "runtime/emu/queue.h"
#include "runtime/queued_device.h"
#include "support/error.h"
#include "support/lazy.h"
#include "support/settings.h"

namespace brasa::runtime::emu {
namespace {

// Behind PyTorch's own kinds.
constexpr auto kType = static_cast<DeviceType>(64);
constexpr int kCount = 2;
constexpr size_t kMemory = size_t{8} << 30;
constexpr uint8_t kRubbish = 0xCB;

Properties properties_of_emu() {
  Properties p;
  p.name = "emulated GPU";
  p.memory = kMemory;
  p.processors = 4;
  p.loops = Loops::Gpu;
  p.target = "nvptx+sm_80";
  p.code = cpu::host_target();
  // The environment outlives the device.
  const char* named = environment("BRASA_EMU_LIBRARIES");
  for (std::string_view rest = named ? named : ""; !rest.empty();) {
    size_t end = std::min(rest.find(','), rest.size());
    p.libraries.insert(p.libraries.begin(), rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return p;
}

class Emulated;

class LibrarysStream final : public NativeStream {
 public:
  LibrarysStream(Emulated& device, Stream stream) : device_(device), stream_(stream) {}
  bool computes() const override { return true; }
  void add(std::function<void()> work) override;
  void* reach(const void* p) override;

 private:
  Emulated& device_;
  Stream stream_;
};

// Code that work on its way may still need.
class Kernels final : public Module {
 public:
  Kernels(std::shared_ptr<const cpu::Code> code, Queue& queue) : code_(std::move(code)), queue_(queue) {}
  ~Kernels() override { queue_.finish(); }
  Function kernel(std::string_view name) const override { return code_->kernel(name); }

 private:
  std::shared_ptr<const cpu::Code> code_;
  Queue& queue_;
};

class Emulated final : public QueuedDevice {
 public:
  explicit Emulated(int index)
      : QueuedDevice(brasa::Device(kType, static_cast<int8_t>(index)), properties_of_emu()), memory_(kMemory) {}

  bool has(DType dtype) const override { return !(lacking >> static_cast<int>(dtype) & 1); }

  void* allocate(size_t bytes, Stream stream) override {
    check_there();
    void* p = QueuedDevice::allocate(bytes, stream);
    fill(p, kRubbish, bytes, stream);
    return p;
  }
  void* allocate_pinned(size_t bytes) override {
    check_there();
    return Device::allocate_pinned(bytes);
  }

  Stream make_stream(bool) override { return queue.make_stream(); }
  void destroy_stream(Stream stream) override { queue.destroy_stream(stream); }
  Event record(Stream stream) override { return queue.record(stream); }
  void wait(Stream stream, Event event) override { queue.wait(stream, event); }
  bool done(Event event) override { return queue.done(event); }
  void synchronize_event(Event event) override {
    check_there();
    ++waits;
    queue.finish_event(event);
  }

  std::unique_ptr<TimeMark> mark_time(Stream stream, bool timed) override;
  bool idle(Stream stream) override {
    check_there();
    bool idle = queue.idle(stream);
    if (!idle) queue.go_on();
    return idle;
  }

  void* native_stream(Stream stream) override {
    check_there();
    std::lock_guard lock(native_mutex_);
    return static_cast<NativeStream*>(&native_.try_emplace(stream, *this, stream).first->second);
  }
  void* reach(const void* p) { return memory_.reach(p); }

  void upload(void* to, const void* from, size_t bytes, Stream stream, bool pinned) override {
    if (bytes == 0) return;
    check_there();
    void* at = memory_.reach(to);
    if (pinned) return add(stream, [=] { std::memcpy(at, from, bytes); });
    auto* source = static_cast<const char*>(from);
    add(stream, [at, copy = std::vector<char>(source, source + bytes)] { std::memcpy(at, copy.data(), copy.size()); });
  }
  void copy(void* to, const void* from, size_t bytes, Stream stream) override {
    if (bytes == 0) return;
    check_there();
    void *a = memory_.reach(to), *b = memory_.reach(from);
    add(stream, [=] { std::memmove(a, b, bytes); });
  }
  void fill(void* p, uint8_t byte, size_t bytes, Stream stream) override {
    if (bytes == 0) return;
    check_there();
    void* at = memory_.reach(p);
    add(stream, [=] { std::memset(at, byte, bytes); });
  }

  std::shared_ptr<const Module> load(const KernelImage& image) override {
    check_there();
    return std::make_shared<Kernels>(cpu::load(image), queue);
  }
  void launch(const Launch& l, Stream stream) override {
    check_launch();
    if (l.count == 0) return;
    if (keeps(stream)) kept_launches_.push_back(kept_.size());
    add(stream, work_of(l));
  }
  /// Behind what the stream was given before.
  void add(Stream stream, std::function<void()> work) {
    keeps(stream) ? kept_.push_back(std::move(work)) : queue.add(stream, std::move(work));
  }
  size_t launches_kept() const override { return kept_launches_.size(); }
  std::function<void()> work_of(const Launch& l) {
    std::vector<Slot> slots(l.slots.begin(), l.slots.end());
    size_t each = slots.size() / static_cast<size_t>(l.calls);
    for (size_t i = 0; i < slots.size(); ++i)
      if (i % each < l.addresses)
        slots[i] = reinterpret_cast<Slot>(memory_.reach(reinterpret_cast<const void*>(slots[i])));
    auto kernel = reinterpret_cast<cpu::KernelFunction>(reinterpret_cast<uintptr_t>(l.kernel));
    return [=, slots = std::move(slots), count = l.count, grain = l.grain, scratch = l.scratch_bytes]() mutable {
      for (size_t call = 0; call < slots.size(); call += each)
        cpu::launch(kernel, slots.data() + call, count, grain, scratch);
    };
  }
  void check_launch() {
    check_there();
    if (int64_t n = failing.load(); n > 0 && failing.fetch_sub(1) == 1)
      throw DeviceError(brasa::str("device '", id().str(), "': a kernel could not be launched (injected)"));
  }

  // Injected.
  std::atomic<size_t> limit{0};
  std::atomic<int64_t> failing{0};
  std::atomic<bool> lost{false};
  std::atomic<uint64_t> lacking{0};
  std::atomic<int64_t> waits{0};
  Queue queue;

 protected:
  void finish_stream(Stream stream) override {
    check_there();
    ++waits;
    queue.finish(stream);
  }
  void start_download(void* to, const void* from, size_t bytes, Stream stream) override {
    check_there();
    void* at = memory_.reach(from);
    queue.add(stream, [=] { std::memcpy(to, at, bytes); });
  }

  void* take(size_t bytes) override {
    size_t most = limit.load();
    return most && memory_.used() + bytes > most ? nullptr : memory_.take(bytes);
  }
  void give_back(void* p, size_t bytes) override { memory_.give_back(p, bytes); }
  std::pair<size_t, size_t> room() override {
    size_t most = limit.load() ? limit.load() : memory_.size(), used = memory_.used();
    return {most > used ? most - used : 0, most};
  }
  void finish() override {
    check_there();
    ++waits;
    queue.finish();
  }
  void start_keeping(Stream) override {
    kept_.clear();
    kept_launches_.clear();
  }
  std::unique_ptr<KeptWork> stop_keeping(Stream stream, std::shared_ptr<KeptMemory> memory) override;

 private:
  void check_there() const {
    if (lost)
      throw DeviceError(brasa::str("device '", id().str(),
                                   "' is lost: its memory and the work that it was given are gone (injected)"));
  }

  Memory memory_;
  std::mutex native_mutex_;
  std::map<Stream, LibrarysStream> native_;
  std::vector<std::function<void()>> kept_;
  std::vector<size_t> kept_launches_;  // of these

  class KeptList;
};

class Emulated::KeptList final : public Kept {
 public:
  KeptList(Emulated& device, std::shared_ptr<KeptMemory> memory)
      : Kept(std::move(memory)),
        device_(device),
        work_(std::move(device.kept_)),
        launches_(std::move(device.kept_launches_)) {}
  void change(size_t n, const Launch& launch) override { work_[launches_.at(n)] = device_.work_of(launch); }
  void start(Stream stream) override {
    device_.check_launch();
    for (const auto& w : work_) device_.queue.add(stream, w);
  }

 private:
  Emulated& device_;
  std::vector<std::function<void()>> work_;
  std::vector<size_t> launches_;
};
std::unique_ptr<KeptWork> Emulated::stop_keeping(Stream, std::shared_ptr<KeptMemory> memory) {
  return std::make_unique<KeptList>(*this, std::move(memory));
}

/// Of the host's clock, when the queue comes to it.
class Reached final : public TimeMark {
 public:
  Reached(Emulated& device, Stream stream, bool timed) : device_(device) {
    if (timed) device.queue.add(stream, [at = at_] { *at = Clock::now(); });
    event_ = device.record(stream);
  }
  bool reached() const override {
    bool reached = device_.done(event_);
    if (!reached) device_.queue.go_on();
    return reached;
  }
  void wait() const override { device_.synchronize_event(event_); }
  void hold(Device& device, Stream stream) const override {
    &device == &device_ ? device.wait(stream, event_) : wait();
  }
  double since(const TimeMark& earlier) const override {
    const auto& from = static_cast<const Reached&>(earlier);
    from.wait();
    wait();
    return std::chrono::duration<double, std::milli>(*at_ - *from.at_).count();
  }

 private:
  using Clock = std::chrono::steady_clock;
  Emulated& device_;
  Event event_ = 0;
  std::shared_ptr<Clock::time_point> at_ = std::make_shared<Clock::time_point>();
};
std::unique_ptr<TimeMark> Emulated::mark_time(Stream stream, bool timed) {
  check_there();
  return std::make_unique<Reached>(*this, stream, timed);
}

void LibrarysStream::add(std::function<void()> work) { device_.add(stream_, std::move(work)); }
void* LibrarysStream::reach(const void* p) { return device_.reach(p); }

Emulated& emulated(int index) {
  static constinit Lazy<std::array<Emulated*, kCount>> devices([] {
    std::array<Emulated*, kCount> made;
    for (int i = 0; i < kCount; ++i) made[i] = new Emulated(i);
    return made;
  });
  BRASA_CHECK(index >= 0 && index < kCount, "device 'emu:", index, "' is not there");
  return *(*devices)[index];
}

}  // namespace

void limit_memory(int index, size_t bytes) { emulated(index).limit = bytes; }
void fail_launch(int index, int64_t n) { emulated(index).failing = n; }
void lose(int index) {
  emulated(index).lost = true;
  emulated(index).queue.clear();
}
void come_back(int index) { emulated(index).lost = false; }
void lack(int index, DType dtype, bool lacks) {
  uint64_t bit = uint64_t{1} << static_cast<int>(dtype);
  lacks ? emulated(index).lacking.fetch_or(bit) : emulated(index).lacking.fetch_and(~bit);
}
void seed(int index, uint64_t seed) { emulated(index).queue.seed(seed); }
int64_t waits(int index) { return emulated(index).waits; }
size_t waiting(int index) { return emulated(index).queue.waiting(); }

const DeviceRow kRow = {
    .name = "emu",
    .type = kType,
    .count = [] { return kCount; },
    .device = [](int index) -> Device& { return emulated(index); },
    .dlpack = 12,  // "extension device, for tests"
};

}  // namespace brasa::runtime::emu
