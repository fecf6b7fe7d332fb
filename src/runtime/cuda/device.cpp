#if __has_include(<cuda.h>)
#include <cuda.h>
#define BRASA_CHECK_PROTOTYPES
#endif

#include "runtime/cuda/device.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "runtime/cuda/cublaslt.h"
#include "runtime/cuda/cudnn.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/examine.h"
#include "runtime/cuda/graph.h"
#include "runtime/queued_device.h"
#include "support/error.h"
#include "support/lazy.h"

namespace brasa::runtime::cuda {
namespace {

// Numbers of the driver's enumerations.
constexpr int kNonBlocking = 1, kNoTiming = 2, kNotReady = 600;
constexpr int kLogBuffer = 5, kLogBufferSize = 6;
constexpr int kMajor = 75, kMinor = 76, kMultiprocessors = 16, kWarp = 10, kIntegrated = 18, kL2Cache = 38;
constexpr int kBlockThreads = 1, kProcessorThreads = 39, kProcessorRegisters = 82;
constexpr int kBlockShared = 8, kBlockSharedOptIn = 97, kProcessorShared = 81;
#ifdef BRASA_CHECK_PROTOTYPES
static_assert(kNonBlocking == CU_STREAM_NON_BLOCKING && kNoTiming == CU_EVENT_DISABLE_TIMING &&
              kNotReady == CUDA_ERROR_NOT_READY);
static_assert(kLogBuffer == CU_JIT_ERROR_LOG_BUFFER && kLogBufferSize == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
static_assert(kMajor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR &&
              kMinor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR &&
              kMultiprocessors == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT && kWarp == CU_DEVICE_ATTRIBUTE_WARP_SIZE &&
              kIntegrated == CU_DEVICE_ATTRIBUTE_INTEGRATED && kL2Cache == CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
static_assert(kBlockThreads == CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK &&
              kProcessorThreads == CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR &&
              kProcessorRegisters == CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
static_assert(kBlockShared == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK &&
              kBlockSharedOptIn == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN &&
              kProcessorShared == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
#endif
// The driver takes the nearest priority that the device has; smaller ones go first.
constexpr int kUsual = 0, kUrgent = -100;
constexpr int kMostDevices = 16;

DevicePointer address(const void* p) { return reinterpret_cast<DevicePointer>(p); }

// The newest architecture that the code generator knows and the GPU runs; PTX is compatible upwards.
std::string target_for(int capability) {
  constexpr int kKnown[] = {90, 89, 86, 80, 75, 70};
  for (int sm : kKnown)
    if (sm <= capability) return str("nvptx+sm_", sm);
  fail(str("device 'cuda': compute capability ", capability / 10, ".", capability % 10, " is below 7.0"));
}

// Of a question that the driver answers at once.
bool finished(Result answer, const char* call) {
  if (answer != kNotReady) check(answer, call);
  return answer != kNotReady;
}

DeviceNumber number_of(int index) {
  DeviceNumber number = 0;
  check(driver().device_get(&number, index), "cuDeviceGet");
  return number;
}

Properties properties_of(int index) {
  const Driver& d = driver();
  DeviceNumber number = number_of(index);
  Properties p;
  char name[256] = {};
  check(d.device_get_name(name, sizeof name, number), "cuDeviceGetName");
  p.name = name;
  check(d.device_total_memory(&p.memory, number), "cuDeviceTotalMem");
  auto attribute = [&](int which) {
    int value = 0;
    check(d.device_get_attribute(&value, which, number), "cuDeviceGetAttribute");
    return value;
  };
  p.limits.major = attribute(kMajor);
  p.limits.minor = attribute(kMinor);
  p.processors = attribute(kMultiprocessors);
  p.limits.warp_size = attribute(kWarp);
  p.limits.max_threads_per_block = attribute(kBlockThreads);
  p.limits.max_threads_per_multi_processor = attribute(kProcessorThreads);
  p.limits.regs_per_multiprocessor = attribute(kProcessorRegisters);
  p.limits.shared_memory_per_block = static_cast<size_t>(attribute(kBlockShared));
  p.limits.shared_memory_per_block_optin = static_cast<size_t>(attribute(kBlockSharedOptIn));
  p.limits.shared_memory_per_multiprocessor = static_cast<size_t>(attribute(kProcessorShared));
  p.limits.L2_cache_size = static_cast<size_t>(attribute(kL2Cache));
  p.limits.is_integrated = attribute(kIntegrated) != 0;
  p.loops = Loops::Gpu;
  p.target = p.code = target_for(p.limits.major * 10 + p.limits.minor);
  // And of TF32. All kernels that are written here are for GPUs that have them.
  constexpr int kTensorCoresOfBfloat16 = 8;
  if (p.limits.major >= kTensorCoresOfBfloat16)
    p.libraries.insert(p.libraries.begin(), {"attention", "attention_tf32", "sort", "concat"});
  if (have_convolutions()) p.libraries.insert(p.libraries.begin(), "cudnn");
  if (have_products()) p.libraries.insert(p.libraries.begin(), "cublaslt");
  // Whose tensor cores take operands of TF32 as place_along_sum puts them.
  constexpr int kHopper = 9;
  if (have_products() && p.limits.major == kHopper)
    p.libraries.insert(p.libraries.begin(), {"tiled_products", "cublaslt_tf32"});
  return p;
}

/// Functions that wait themselves for what their stream was given before, and may start while that runs.
class EarlyStarters {
 public:
  void add(FunctionHandle f) {
    std::lock_guard lock(mutex_);
    all_.insert(f);
  }
  void remove(FunctionHandle f) {
    std::lock_guard lock(mutex_);
    all_.erase(f);
  }
  bool holds(FunctionHandle f) const {
    std::lock_guard lock(mutex_);
    return all_.count(f) > 0;
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_set<FunctionHandle> all_;
};

class Gpu;

/// An event, which may know its time.
class Mark final : public TimeMark {
 public:
  Mark(const Gpu& device, StreamHandle stream, bool timed);
  ~Mark() override { driver().event_destroy(event_); }
  bool reached() const override;
  void wait() const override;
  void hold(Device& device, Stream stream) const override;
  double since(const TimeMark& earlier) const override;

 private:
  const Gpu& device_;
  EventHandle event_ = nullptr;
};

/// A PTX image turned into the GPU's code by the driver.
class Ptx final : public Module {
 public:
  Ptx(Gpu& device, const KernelImage& image);
  ~Ptx() override;
  Function kernel(std::string_view name) const override {
    auto it = kernels_.find(std::string(name));
    BRASA_CHECK(it != kernels_.end(), "kernel image: it has no kernel '", name, "'");
    return it->second;
  }

 private:
  Gpu& device_;
  ModuleHandle module_ = nullptr;
  std::unordered_map<std::string, FunctionHandle> kernels_;
};

/// One GPU with its primary context.
class Gpu final : public QueuedDevice {
 public:
  explicit Gpu(int index) : QueuedDevice(brasa::Device(kCUDA, static_cast<int8_t>(index)), properties_of(index)) {
    check(driver().primary_context_retain(&context_, number_of(index)), "cuDevicePrimaryCtxRetain");
    make_stream();  // kDefaultStream
  }

  /// Makes the device current in this thread.
  void use() const {
    thread_local ContextHandle current = nullptr;
    if (current == context_) return;
    check(driver().context_set_current(context_), "cuCtxSetCurrent");
    current = context_;
  }

  void* allocate_pinned(size_t bytes) override {
    if (bytes == 0) return nullptr;
    use();
    void* p = nullptr;
    check(driver().memory_allocate_host(&p, bytes), "cuMemAllocHost");
    return p;
  }
  void deallocate_pinned(void* p, size_t) override {
    if (!p) return;
    use();
    check(driver().memory_free_host(p), "cuMemFreeHost");
  }

  Stream make_stream(bool urgent = false) override {
    use();
    StreamHandle s = nullptr;
    check(driver().stream_create(&s, kNonBlocking, urgent ? kUrgent : kUsual), "cuStreamCreateWithPriority");
    std::lock_guard lock(mutex_);
    streams_.push_back(s);
    return static_cast<Stream>(streams_.size() - 1);
  }
  void destroy_stream(Stream stream) override {
    if (stream == kDefaultStream) return;
    finish_stream(stream);
    std::lock_guard lock(mutex_);
    check(driver().stream_destroy(streams_.at(stream)), "cuStreamDestroy");
    streams_[stream] = nullptr;
  }
  Event record(Stream stream) override {
    use();
    EventHandle e = nullptr;
    check(driver().event_create(&e, kNoTiming), "cuEventCreate");
    check(driver().event_record(e, handle(stream)), "cuEventRecord");
    std::lock_guard lock(mutex_);
    events_[next_event_] = e;
    return next_event_++;
  }
  void wait(Stream stream, Event event) override {
    use();
    if (EventHandle e = find(event)) check(driver().stream_wait_event(handle(stream), e, 0), "cuStreamWaitEvent");
  }
  bool done(Event event) override {
    use();
    EventHandle e = find(event);
    if (!e) return true;
    if (!finished(driver().event_query(e), "cuEventQuery")) return false;
    forget(event);
    return true;
  }
  void synchronize_event(Event event) override {
    use();
    if (EventHandle e = find(event)) check(driver().event_synchronize(e), "cuEventSynchronize");
    forget(event);
  }

  std::unique_ptr<TimeMark> mark_time(Stream stream, bool timed) override {
    return std::make_unique<Mark>(*this, handle(stream), timed);
  }
  bool idle(Stream stream) override {
    use();
    return finished(driver().stream_query(handle(stream)), "cuStreamQuery");
  }
  void* native_stream(Stream stream) override {
    use();
    return handle(stream);
  }

  // The driver has staged memory that is not pinned before it returns.
  void upload(void* to, const void* from, size_t bytes, Stream stream, bool) override {
    if (bytes == 0) return;
    use();
    check(driver().copy_to_device(address(to), from, bytes, handle(stream)), "cuMemcpyHtoDAsync");
  }
  void copy(void* to, const void* from, size_t bytes, Stream stream) override {
    if (bytes == 0) return;
    use();
    check(driver().copy_on_device(address(to), address(from), bytes, handle(stream)), "cuMemcpyDtoDAsync");
  }
  void fill(void* p, uint8_t byte, size_t bytes, Stream stream) override {
    if (bytes == 0) return;
    use();
    check(driver().set_bytes(address(p), byte, bytes, handle(stream)), "cuMemsetD8Async");
  }

  std::shared_ptr<const Module> load(const KernelImage& image) override { return std::make_shared<Ptx>(*this, image); }
  void launch(const Launch& l, Stream stream) override {
    if (l.count == 0) return;
    use();
    StreamHandle h = handle(stream);
    auto function = static_cast<FunctionHandle>(const_cast<void*>(l.kernel));
    Parameters(l).launch(h, !l.waits && start_early_.holds(function));
    if (keeps(stream)) kept_.push_back(last_of(h));
  }
  size_t launches_kept() const override { return kept_.size(); }
  EarlyStarters& start_early() { return start_early_; }

 protected:
  void finish_stream(Stream stream) override {
    use();
    check(driver().stream_synchronize(handle(stream)), "cuStreamSynchronize");
  }
  void finish() override {
    use();
    check(driver().context_synchronize(), "cuCtxSynchronize");
  }
  void start_download(void* to, const void* from, size_t bytes, Stream stream) override {
    use();
    check(driver().copy_to_host(to, address(from), bytes, handle(stream)), "cuMemcpyDtoHAsync");
  }

  void start_keeping(Stream stream) override {
    use();
    kept_.clear();
    begin_capture(handle(stream));
  }
  std::unique_ptr<KeptWork> stop_keeping(Stream stream, std::shared_ptr<KeptMemory> memory) override;

  void* take(size_t bytes) override {
    use();
    DevicePointer p = 0;
    return driver().memory_allocate(&p, bytes) == 0 ? reinterpret_cast<void*>(p) : nullptr;
  }
  void give_back(void* p, size_t) override {
    use();
    check(driver().memory_free(address(p)), "cuMemFree");
  }
  std::pair<size_t, size_t> room() override {
    use();
    size_t free = 0, whole = 0;
    check(driver().memory_get_info(&free, &whole), "cuMemGetInfo");
    return {free, whole};
  }

 private:
  StreamHandle handle(Stream stream) {
    std::lock_guard lock(mutex_);
    BRASA_CHECK(stream < streams_.size() && streams_[stream], "device '", str(), "': stream ", stream, " is not there");
    return streams_[stream];
  }
  EventHandle find(Event event) {
    std::lock_guard lock(mutex_);
    auto it = events_.find(event);
    return it == events_.end() ? nullptr : it->second;
  }
  void forget(Event event) {
    std::lock_guard lock(mutex_);
    auto it = events_.find(event);
    if (it == events_.end()) return;
    check(driver().event_destroy(it->second), "cuEventDestroy");
    events_.erase(it);
  }

  ContextHandle context_ = nullptr;
  std::mutex mutex_;
  std::vector<StreamHandle> streams_;
  std::unordered_map<Event, EventHandle> events_;  // not known to be reached
  Event next_event_ = 1;
  std::vector<NodeHandle> kept_;  // launches
  EarlyStarters start_early_;

  class KeptGraph;
};

class Gpu::KeptGraph final : public Kept {
 public:
  KeptGraph(Gpu& device, StreamHandle stream, std::shared_ptr<KeptMemory> memory)
      : Kept(std::move(memory)), device_(device), graph_(stream), launches_(std::move(device.kept_)) {}
  ~KeptGraph() override { device_.use(); }
  void change(size_t n, const Launch& launch) override {
    device_.use();
    Parameters(launch).change(graph_.runnable(), launches_.at(n));
  }
  void start(Stream stream) override {
    device_.use();
    check(driver().graph_launch(graph_.runnable(), device_.handle(stream)), "cuGraphLaunch");
  }

 private:
  Gpu& device_;
  Graph graph_;
  std::vector<NodeHandle> launches_;
};
std::unique_ptr<KeptWork> Gpu::stop_keeping(Stream stream, std::shared_ptr<KeptMemory> memory) {
  use();
  return std::make_unique<KeptGraph>(*this, handle(stream), std::move(memory));
}

Mark::Mark(const Gpu& device, StreamHandle stream, bool timed) : device_(device) {
  device.use();
  check(driver().event_create(&event_, timed ? 0 : kNoTiming), "cuEventCreate");
  check(driver().event_record(event_, stream), "cuEventRecord");
}
bool Mark::reached() const {
  device_.use();
  return finished(driver().event_query(event_), "cuEventQuery");
}
void Mark::wait() const {
  device_.use();
  check(driver().event_synchronize(event_), "cuEventSynchronize");
}
void Mark::hold(Device& device, Stream stream) const {
  auto held = static_cast<StreamHandle>(device.native_stream(stream));
  check(driver().stream_wait_event(held, event_, 0), "cuStreamWaitEvent");
}
double Mark::since(const TimeMark& earlier) const {
  const auto& from = static_cast<const Mark&>(earlier);
  from.wait();
  wait();
  float milliseconds = 0;
  check(driver().event_elapsed_time(&milliseconds, from.event_, event_), "cuEventElapsedTime");
  return double{milliseconds};
}

Ptx::Ptx(Gpu& device, const KernelImage& image) : device_(device) {
  BRASA_CHECK(image.target.starts_with("nvptx"), "kernel image: it is compiled for ", image.target,
              ", not for an NVIDIA GPU");
  device.use();
  std::string ptx(image.code.begin(), image.code.end()), log(8192, '\0');
  int options[] = {kLogBuffer, kLogBufferSize};
  void* values[] = {log.data(), reinterpret_cast<void*>(log.size())};
  Result r = driver().module_load(&module_, ptx.c_str(), 2, options, values);
  if (r != 0) {
    module_ = nullptr;
    check(r,
          brasa::str("cuModuleLoadDataEx for ", image.target, " on ", device.properties().name, " (", log.c_str(), ")")
              .c_str());
  }
  for (const KernelEntry& e : image.entries) {
    FunctionHandle f = nullptr;
    check(driver().module_get_function(&f, module_, e.name.c_str()), "cuModuleGetFunction");
    kernels_[e.name] = f;
    if (ptx.find("griddepcontrol.wait") != std::string::npos) device_.start_early().add(f);
  }
}

// A kernel may still be on its way.
Ptx::~Ptx() {
  if (!module_) return;
  device_.use();
  for (const auto& [name, f] : kernels_) device_.start_early().remove(f);
  driver().context_synchronize();
  driver().module_unload(module_);
}

int count() {
  static constinit Lazy<int> n([] {
    const Driver* d = find_driver();
    int found = 0;
    return d && d->device_get_count(&found) == 0 ? std::min(found, kMostDevices) : 0;
  });
  return *n;
}

Device& device(int index) {
  static std::mutex mutex;
  static std::array<Gpu*, kMostDevices> devices{};
  std::lock_guard lock(mutex);
  // Never destroyed: the driver may be gone before static objects are.
  if (!devices[index]) devices[index] = new Gpu(index);
  return *devices[index];
}

}  // namespace

const DeviceRow kRow = {.name = "cuda",
                        .type = kCUDA,
                        .count = count,
                        .device = device,
                        .why_none = [] { return why_no_driver(); },
                        .dlpack = 2,
                        .autocast = DType::Float16,
                        .examine = examine};

}  // namespace brasa::runtime::cuda
