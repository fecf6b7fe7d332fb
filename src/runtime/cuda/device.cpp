#include "runtime/cuda/device.h"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>

#include "support/error.h"

namespace brasa::runtime::cuda {
namespace {

// Numbers of the driver's enumerations.
constexpr int kMajor = 75, kMinor = 76, kMultiprocessors = 16, kNonBlocking = 1;
constexpr int kLogBuffer = 5, kLogBufferSize = 6;

DevicePointer address(const void* p) { return reinterpret_cast<DevicePointer>(p); }

// The newest architecture that the code generator knows and the GPU runs; PTX is compatible upwards.
std::string target_for(int capability) {
  constexpr int kKnown[] = {90, 89, 86, 80, 75, 70};
  for (int sm : kKnown)
    if (sm <= capability) return str("nvptx+sm_", sm);
  fail(str("device 'cuda': compute capability ", capability / 10, ".", capability % 10, " is below 7.0"));
}

}  // namespace

int device_count() {
  const Driver* d = find_driver();
  int n = 0;
  return d && d->device_get_count(&n) == 0 ? n : 0;
}

struct Device::Cache {
  std::mutex mutex;
  std::multimap<size_t, DevicePointer> free;
  MemoryStats stats;
  // Enough slack that nearby sizes share blocks.
  static size_t rounded(size_t bytes) {
    size_t step = bytes < (size_t{1} << 20) ? 512 : size_t{2} << 20;
    return (bytes + step - 1) / step * step;
  }
};

Device& Device::get(int index) {
  static std::mutex mutex;
  static std::array<Device*, 64> devices{};
  (void)driver();  // says what is missing
  int count = device_count();
  BRASA_CHECK(index >= 0 && index < std::min(count, 64), "device 'cuda:", index, "': this machine has ", count,
              " GPUs");
  std::lock_guard lock(mutex);
  // Never destroyed: the driver may be gone before static objects are.
  if (!devices[index]) devices[index] = new Device(index);
  return *devices[index];
}

Device::Device(int index) : cache_(std::make_unique<Cache>()) {
  const Driver& d = driver();
  DeviceNumber number = 0;
  check(d.device_get(&number, index), "cuDeviceGet");
  char name[256] = {};
  check(d.device_get_name(name, sizeof name, number), "cuDeviceGetName");
  name_ = name;
  int major = 0, minor = 0;
  check(d.device_get_attribute(&major, kMajor, number), "cuDeviceGetAttribute");
  check(d.device_get_attribute(&minor, kMinor, number), "cuDeviceGetAttribute");
  check(d.device_get_attribute(&multiprocessors_, kMultiprocessors, number), "cuDeviceGetAttribute");
  target_ = target_for(major * 10 + minor);
  check(d.primary_context_retain(&context_, number), "cuDevicePrimaryCtxRetain");
  use();
  check(d.stream_create(&stream_, kNonBlocking), "cuStreamCreate");
}

void Device::use() const {
  thread_local ContextHandle current = nullptr;
  if (current == context_) return;
  check(driver().context_set_current(context_), "cuCtxSetCurrent");
  current = context_;
}

void* Device::allocate(size_t bytes) {
  if (bytes == 0) return nullptr;
  use();
  size_t size = Cache::rounded(bytes);
  std::lock_guard lock(cache_->mutex);
  MemoryStats& s = cache_->stats;
  DevicePointer p = 0;
  auto it = cache_->free.lower_bound(size);
  // A block that is much too large would be missed by a later, larger request.
  if (it != cache_->free.end() && it->first == size) {
    p = it->second;
    cache_->free.erase(it);
    s.cached -= static_cast<int64_t>(size);
  } else if (driver().memory_allocate(&p, size) != 0) {
    check(driver().stream_synchronize(stream_), "cuStreamSynchronize");
    for (auto [n, q] : cache_->free) check(driver().memory_free(q), "cuMemFree");
    cache_->free.clear();
    s.cached = 0;
    Result r = driver().memory_allocate(&p, size);
    BRASA_CHECK(r == 0, "out of memory on device 'cuda' (", name_, "): ", bytes, " bytes could not be allocated, ",
                s.allocated, " are in use");
  }
  s.allocated += static_cast<int64_t>(size);
  s.peak = std::max(s.peak, s.allocated);
  return reinterpret_cast<void*>(p);
}

void Device::deallocate(void* p, size_t bytes) {
  if (!p) return;
  size_t size = Cache::rounded(bytes);
  std::lock_guard lock(cache_->mutex);
  cache_->free.emplace(size, address(p));
  cache_->stats.allocated -= static_cast<int64_t>(size);
  cache_->stats.cached += static_cast<int64_t>(size);
}

MemoryStats Device::memory_stats() const {
  std::lock_guard lock(cache_->mutex);
  return cache_->stats;
}

void Device::empty_cache() {
  synchronize();
  std::lock_guard lock(cache_->mutex);
  for (auto [n, q] : cache_->free) check(driver().memory_free(q), "cuMemFree");
  cache_->free.clear();
  cache_->stats.cached = 0;
}

void Device::copy_to_device(void* to, const void* from, size_t bytes) {
  if (bytes == 0) return;
  use();
  check(driver().copy_to_device(address(to), from, bytes, stream_), "cuMemcpyHtoDAsync");
  // Pageable memory is staged by the driver before it returns; page-locked memory is not.
  synchronize();
}

void Device::copy_to_host(void* to, const void* from, size_t bytes) {
  if (bytes == 0) return;
  use();
  check(driver().copy_to_host(to, address(from), bytes, stream_), "cuMemcpyDtoHAsync");
  synchronize();
}

void Device::copy_on_device(void* to, const void* from, size_t bytes) {
  if (bytes == 0) return;
  use();
  check(driver().copy_on_device(address(to), address(from), bytes, stream_), "cuMemcpyDtoDAsync");
}

void Device::fill_zero(void* p, size_t bytes) {
  if (bytes == 0) return;
  use();
  check(driver().set_bytes(address(p), 0, bytes, stream_), "cuMemsetD8Async");
}

void Device::synchronize() {
  use();
  check(driver().stream_synchronize(stream_), "cuStreamSynchronize");
}

Module::~Module() {
  if (!module_) return;
  device_.use();
  driver().module_unload(module_);
}

FunctionHandle Module::kernel(std::string_view name) const {
  auto it = kernels_.find(std::string(name));
  BRASA_CHECK(it != kernels_.end(), "kernel image: it has no kernel '", name, "'");
  return it->second;
}

std::shared_ptr<const Module> load(Device& device, const KernelImage& image) {
  BRASA_CHECK(image.target.starts_with("nvptx"), "kernel image: it is compiled for ", image.target,
              ", not for an NVIDIA GPU");
  device.use();
  auto module = std::shared_ptr<Module>(new Module(device));
  std::string ptx(image.code.begin(), image.code.end()), log(8192, '\0');
  int options[] = {kLogBuffer, kLogBufferSize};
  void* values[] = {log.data(), reinterpret_cast<void*>(log.size())};
  Result r = driver().module_load(&module->module_, ptx.c_str(), 2, options, values);
  if (r != 0) {
    module->module_ = nullptr;
    check(r, str("cuModuleLoadDataEx for ", image.target, " on ", device.name(), " (", log.c_str(), ")").c_str());
  }
  for (const KernelEntry& e : image.entries) {
    FunctionHandle f = nullptr;
    check(driver().module_get_function(&f, module->module_, e.name.c_str()), "cuModuleGetFunction");
    module->kernels_[e.name] = f;
  }
  return module;
}

void launch(Device& device, FunctionHandle kernel, const std::vector<void*>& buffers, const std::vector<int64_t>& sizes,
            int64_t count, int64_t threads) {
  if (count == 0) return;
  BRASA_CHECK(count <= 0x7fffffff, "CUDA: a grid of ", count, " blocks is larger than the hardware's limit");
  device.use();
  std::vector<void*> parameters;
  for (void* const& b : buffers) parameters.push_back(const_cast<void**>(&b));
  for (const int64_t& s : sizes) parameters.push_back(const_cast<int64_t*>(&s));
  check(driver().launch_kernel(kernel, static_cast<unsigned>(count), 1, 1, static_cast<unsigned>(threads), 1, 1, 0,
                               device.stream(), parameters.data(), nullptr),
        "cuLaunchKernel");
}

}  // namespace brasa::runtime::cuda
