#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "control.h"
#include "matrix_map.h"
#include "ptx.h"
#include "runtime/cuda/driver.h"
#include "runtime/emu/native_stream.h"
#include "runtime/image.h"

// CUDA's driver as far as src/runtime/cuda/driver.h and src/export/alone/cuda.h have it: one GPU of the host's memory, which does
// everything at once. Kernels that src/runtime/cuda writes run (ptx.h), and those that are the host's code, which exported programs for "emu" have; others
// compute nothing.
namespace {

brasa::fakes::Log log_of_calls;

constexpr int kOutOfMemory = 2, kInvalidValue = 1, kNotFound = 500, kIllegalAddress = 700, kContextDestroyed = 709;
constexpr size_t kMemory = size_t{64} << 30;
using Clock = std::chrono::steady_clock;

// A kernel's parameter: 8 bytes, or a map.
struct alignas(128) Parameter {
  size_t size;
  alignas(128) char bytes[128];
};
// What a graph keeps: work, and what its launches are given.
struct Node {
  std::function<void(void**)> work;
  std::vector<Parameter> given;
  void take(void** parameters) {
    for (size_t i = 0; i < given.size(); ++i) std::memcpy(given[i].bytes, parameters[i], given[i].size);
  }
  void run() {
    std::vector<void*> parameters;
    for (auto& p : given) parameters.push_back(p.bytes);
    work(parameters.data());
  }
};
using Graph = std::vector<std::shared_ptr<Node>>;

class Stream final : public brasa::runtime::emu::NativeStream {
 public:
  bool computes() const override { return false; }
  void add(std::function<void()> work) override {
    add({[work = std::move(work)](void**) { work(); }, {}});
  }
  void add(Node node) { kept ? kept->push_back(std::make_shared<Node>(std::move(node))) : node.run(); }
  std::unique_ptr<Graph> kept;  // while it keeps
  void* reach(const void* p) override { return const_cast<void*>(p); }
  explicit Stream(int n = ++made) : number(n) {}
  int number;  // from 1, in the order in which they are made
  static inline std::atomic<int> made = 0;
};
// The default one has no name.
Stream& stream_of(Stream* given) {
  static Stream the_default(0);
  return given ? *given : the_default;
}
struct Event {
  Clock::time_point at;
};
// The host's code: slots, blocks, memory of its own.
using HostKernel = void (*)(const void*, int64_t begin, int64_t end, void*);
struct Function {
  std::shared_ptr<const brasa::fakes::Program> program;  // none: it computes nothing
  std::vector<Parameter> parameters = {};
  HostKernel kernel = nullptr;  // instead
  std::string name = "";        // of a written kernel, and what all of its file begin with
  const char* family = "";
  bool grouped = false;    // four warps multiply together
  bool clustered = false;  // blocks use each other's shared memory
};
struct Module {
  std::string ptx;
  std::vector<Function*> functions;
  brasa::runtime::KernelImage image;  // instead of text
  void* code = nullptr;
};

constexpr char kImage[] = "BRASAK01";
// Its bytes say how many they are.
void load_image(Module& m, const char* bytes) {
  uint64_t size;
  std::memcpy(&size, bytes + 16, sizeof size);
  m.image = brasa::runtime::KernelImage::parse({bytes, size});
  m.code = mmap(nullptr, m.image.code.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  std::memcpy(m.code, m.image.code.data(), m.image.code.size());
  mprotect(m.code, m.image.code.size(), PROT_READ | PROT_EXEC);
}
// The slots lie one after the other.
void run_on_host(HostKernel kernel, unsigned blocks, void** parameters) {
  alignas(64) static thread_local char own[1 << 22];
  kernel(parameters[0], 0, blocks, own);
}

// Pages that nobody touches cost nothing.
struct Memory {
  std::mutex mutex;
  std::map<void*, size_t> blocks;
  size_t used = 0;
} memory;

void* take(size_t bytes) {
  std::lock_guard lock(memory.mutex);
  if (bytes == 0 || memory.used + bytes > kMemory) return nullptr;
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return nullptr;
  memory.blocks[p] = bytes;
  memory.used += bytes;
  return p;
}
int give_back(void* p) {
  std::lock_guard lock(memory.mutex);
  auto it = memory.blocks.find(p);
  if (it == memory.blocks.end()) return kInvalidValue;
  munmap(p, it->second);
  memory.used -= it->second;
  memory.blocks.erase(it);
  return 0;
}
// The GPU's primary context is there while somebody holds it, and current in a thread even after that.
std::atomic<int> holders = 0;
thread_local void* current_context = nullptr;
void* pointer(unsigned long long p) { return reinterpret_cast<void*>(p); }

}  // namespace

#define BRASA_FAKE extern "C" __attribute__((visibility("default")))
#define BRASA_NOTE \
  if (int status = log_of_calls.note(__func__)) return status

BRASA_FAKE brasa::fakes::Control* brasa_fake() { return &log_of_calls; }

BRASA_FAKE int cuInit(unsigned) { return 0; }
BRASA_FAKE int cuDriverGetVersion(int* version) {
  *version = 13020;
  return 0;
}
BRASA_FAKE int cuGetErrorName(int error, const char** name) {
  *name = error == kOutOfMemory ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_FAKE";
  return 0;
}
BRASA_FAKE int cuGetErrorString(int, const char** text) {
  *text = "injected";
  return 0;
}
BRASA_FAKE int cuDeviceGetCount(int* count) {
  BRASA_NOTE;
  *count = 1;
  return 0;
}
BRASA_FAKE int cuDeviceGet(int* device, int index) {
  *device = index;
  return 0;
}
BRASA_FAKE int cuDeviceGetName(char* name, int size, int) {
  std::strncpy(name, "a GPU of tests", static_cast<size_t>(size));
  return 0;
}
BRASA_FAKE int cuDeviceGetAttribute(int* value, int attribute, int) {
  // By the driver's numbers. Few processors, as what goes through all of them is simulated.
  static const std::map<int, int> values = {{16, 20},  {75, 9},    {76, 0}, {10, 32},
                                            {1, 1024}, {39, 2048}, {18, 0}, {97, 232448}};
  auto it = values.find(attribute);
  *value = it == values.end() ? 0 : it->second;
  return 0;
}
BRASA_FAKE int cuDeviceTotalMem_v2(size_t* bytes, int) {
  *bytes = kMemory;
  return 0;
}
BRASA_FAKE int cuDevicePrimaryCtxRetain(void** context, int) {
  *context = &holders;
  ++holders;
  return 0;
}
BRASA_FAKE int cuDevicePrimaryCtxRelease_v2(int) {
  BRASA_NOTE;
  --holders;
  return 0;
}
BRASA_FAKE int cuCtxGetCurrent(void** context) {
  *context = current_context;
  return 0;
}
BRASA_FAKE int cuCtxGetDevice(int* device) {
  *device = 0;
  return holders > 0 ? 0 : kContextDestroyed;
}
BRASA_FAKE int cuCtxSetCurrent(void* context) {
  current_context = context;
  return 0;
}
BRASA_FAKE int cuCtxSynchronize() {
  BRASA_NOTE;
  return 0;
}

BRASA_FAKE int cuMemAlloc_v2(unsigned long long* p, size_t bytes) {
  BRASA_NOTE;
  if (holders <= 0) return kContextDestroyed;
  *p = reinterpret_cast<unsigned long long>(take(bytes));
  return *p ? 0 : kOutOfMemory;
}
BRASA_FAKE int cuMemFree_v2(unsigned long long p) {
  BRASA_NOTE;
  return give_back(pointer(p));
}
BRASA_FAKE int cuMemAllocHost_v2(void** p, size_t bytes) {
  BRASA_NOTE;
  return (*p = take(bytes)) ? 0 : kOutOfMemory;
}
BRASA_FAKE int cuMemFreeHost(void* p) { return give_back(p); }
BRASA_FAKE int cuMemGetInfo_v2(size_t* free, size_t* whole) {
  *free = kMemory - memory.used;
  *whole = kMemory;
  return 0;
}
BRASA_FAKE int cuMemcpyHtoDAsync_v2(unsigned long long to, const void* from, size_t bytes, Stream*) {
  BRASA_NOTE;
  std::memcpy(pointer(to), from, bytes);
  return 0;
}
BRASA_FAKE int cuMemcpyDtoHAsync_v2(void* to, unsigned long long from, size_t bytes, Stream*) {
  BRASA_NOTE;
  std::memcpy(to, pointer(from), bytes);
  return 0;
}
BRASA_FAKE int cuMemcpyDtoDAsync_v2(unsigned long long to, unsigned long long from, size_t bytes, Stream* stream) {
  BRASA_NOTE;
  stream_of(stream).add([=] { std::memmove(pointer(to), pointer(from), bytes); });
  return 0;
}
BRASA_FAKE int cuMemsetD8Async(unsigned long long p, unsigned char byte, size_t bytes, Stream* stream) {
  BRASA_NOTE;
  stream_of(stream).add([=] { std::memset(pointer(p), byte, bytes); });
  return 0;
}

BRASA_FAKE int cuStreamCreateWithPriority(Stream** out, unsigned, int priority) {
  BRASA_NOTE;
  if (priority < 0) log_of_calls.note("urgent stream");
  *out = new Stream;
  return 0;
}
BRASA_FAKE int cuStreamDestroy_v2(Stream* s) {
  delete s;
  return 0;
}
BRASA_FAKE int cuStreamQuery(Stream*) { return 0; }
BRASA_FAKE int cuStreamSynchronize(Stream*) {
  BRASA_NOTE;
  return 0;
}
BRASA_FAKE int cuStreamWaitEvent(Stream*, Event*, unsigned) {
  BRASA_NOTE;
  return 0;
}
BRASA_FAKE int cuEventCreate(Event** out, unsigned) {
  BRASA_NOTE;
  *out = new Event;
  return 0;
}
BRASA_FAKE int cuEventRecord(Event* e, Stream*) {
  BRASA_NOTE;
  e->at = Clock::now();
  return 0;
}
BRASA_FAKE int cuEventQuery(Event*) { return 0; }
BRASA_FAKE int cuEventSynchronize(Event*) { return 0; }
BRASA_FAKE int cuEventDestroy_v2(Event* e) {
  delete e;
  return 0;
}
BRASA_FAKE int cuEventElapsedTime(float* milliseconds, Event* from, Event* to) {
  *milliseconds = std::chrono::duration<float, std::milli>(to->at - from->at).count();
  return 0;
}

BRASA_FAKE int cuModuleLoadDataEx(Module** out, const void* data, unsigned, int*, void**) {
  BRASA_NOTE;
  const auto* bytes = static_cast<const char*>(data);
  auto module = std::make_unique<Module>();
  if (std::memcmp(bytes, kImage, 8) == 0)
    load_image(*module, bytes);
  else
    module->ptx = bytes;
  *out = module.release();
  return 0;
}
BRASA_FAKE int cuModuleUnload(Module* m) {
  BRASA_NOTE;
  for (Function* f : m->functions) delete f;
  if (m->code) munmap(m->code, m->image.code.size());
  delete m;
  return 0;
}
BRASA_FAKE int cuModuleGetFunction(void** function, Module* m, const char* name) {
  for (const brasa::runtime::KernelEntry& e : m->image.entries)
    if (e.name == name) {
      void* at = static_cast<char*>(m->code) + e.offset;
      m->functions.push_back(new Function{nullptr, {}, reinterpret_cast<HostKernel>(at)});
      *function = m->functions.back();
      return 0;
    }
  size_t entry = m->ptx.find(std::string(".entry ") + name + "(");
  if (entry == std::string::npos) return kNotFound;
  constexpr const char* kWritten[] = {"attention", "few_channels", "sort_", "concat", "tiled_", "small_"};
  auto* const* family = std::find_if(std::begin(kWritten), std::end(kWritten),
                                     [&](const char* prefix) { return std::string_view(name).starts_with(prefix); });
  bool runs = family != std::end(kWritten);
  auto* f = new Function{runs ? brasa::fakes::parse_ptx(m->ptx) : nullptr};
  if (runs) {
    f->name = name;
    f->family = *family;
  }
  f->grouped = m->ptx.find("wgmma.") != std::string::npos;
  f->clustered = m->ptx.find(".reqnctapercluster") != std::string::npos;
  for (size_t end = m->ptx.find(')', entry); runs && (entry = m->ptx.find(".param", entry)) < end; ++entry)
    f->parameters.push_back({m->ptx.compare(entry, 13, ".param .align") == 0 ? size_t{128} : size_t{8}, {}});
  m->functions.push_back(f);
  *function = f;
  return 0;
}
BRASA_FAKE int cuFuncSetAttribute(Function*, int, int) {
  BRASA_NOTE;
  return 0;
}
BRASA_FAKE int cuLaunchKernel(Function* f, unsigned blocks, unsigned, unsigned, unsigned threads, unsigned, unsigned,
                              unsigned shared, Stream* stream, void** parameters, void**) {
  BRASA_NOTE;
  log_of_calls.note(("launch on stream " + std::to_string(stream_of(stream).number)).c_str());
  if (blocks == 0 || threads == 0 || threads > 1024) return kInvalidValue;
  if (f->kernel) {
    run_on_host(f->kernel, blocks, parameters);
    return 0;
  }
  Node node{[=](void** slots) {
              if (!f->program) return;
              log_of_calls.note("written kernel");
              if (f->name != f->family) log_of_calls.note(f->name.c_str());
              log_of_calls.note(f->family);
              if (f->grouped) log_of_calls.note("groups of warps");
              if (f->clustered) log_of_calls.note("clusters of blocks");
              brasa::fakes::run(*f->program, blocks, threads, shared, slots);
            },
            f->parameters};
  node.take(parameters);
  try {
    stream_of(stream).add(std::move(node));
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return kIllegalAddress;
  }
  return 0;
}
BRASA_FAKE int cuLaunchKernelEx(const brasa::runtime::cuda::LaunchConfig* config, Function* f, void** parameters,
                                void** extra) {
  BRASA_NOTE;
  return cuLaunchKernel(f, config->blocks[0], config->blocks[1], config->blocks[2], config->threads[0],
                        config->threads[1], config->threads[2], config->shared_bytes,
                        reinterpret_cast<Stream*>(config->stream), parameters, extra);
}

BRASA_FAKE int cuTensorMapEncodeTiled(void* map, int type, unsigned rank, void* address, const uint64_t* sizes,
                                      const uint64_t* steps, const unsigned* box, const unsigned* element_steps,
                                      int interleave, int swizzle, int, int) {
  BRASA_NOTE;
  constexpr int kHalf = 6, kBrain = 9, kSwizzled128 = 3;
  auto multiple = [](const void* p, uintptr_t of) { return reinterpret_cast<uintptr_t>(p) % of == 0; };
  if ((type != kHalf && type != kBrain) || rank != 2 || interleave != 0 || swizzle != kSwizzled128)
    return kInvalidValue;
  if (!multiple(map, 64) || !multiple(address, 16) || steps[0] % 16 != 0 || steps[0] >> 40 != 0) return kInvalidValue;
  for (int i : {0, 1})
    if (sizes[i] == 0 || sizes[i] > uint64_t{1} << 32 || box[i] == 0 || box[i] > 256 || element_steps[i] != 1)
      return kInvalidValue;
  if (2 * box[0] != 128) return kInvalidValue;  // of the ways that there are, the one that ptx_copies.cpp knows
  brasa::fakes::MatrixMap made{brasa::fakes::MatrixMap::kMark,
                               reinterpret_cast<uintptr_t>(address),
                               sizes[0],
                               sizes[1],
                               steps[0],
                               {box[0], box[1]}};
  std::memcpy(map, &made, sizeof made);
  return 0;
}

BRASA_FAKE int cuStreamBeginCapture_v2(Stream* stream, int) {
  BRASA_NOTE;
  stream->kept = std::make_unique<Graph>();
  return 0;
}
BRASA_FAKE int cuStreamGetCaptureInfo_v2(Stream* stream, int* status, unsigned long*, Graph** graph, Node*** last,
                                         size_t* count) {
  if (!stream->kept || stream->kept->empty()) return kInvalidValue;
  static thread_local Node* node;
  node = stream->kept->back().get();
  *status = 1;
  if (graph) *graph = stream->kept.get();
  *last = &node;
  *count = 1;
  return 0;
}
BRASA_FAKE int cuStreamEndCapture(Stream* stream, Graph** graph) {
  BRASA_NOTE;
  *graph = stream->kept.release();
  return 0;
}
BRASA_FAKE int cuGraphInstantiateWithFlags(Graph** runnable, Graph* graph, unsigned long long) {
  BRASA_NOTE;
  *runnable = graph;
  return 0;
}
BRASA_FAKE int cuGraphExecKernelNodeSetParams_v2(Graph*, Node* node,
                                                 const brasa::runtime::cuda::NodeParameters* given) {
  BRASA_NOTE;
  node->take(given->parameters);
  return 0;
}
BRASA_FAKE int cuGraphLaunch(Graph* graph, Stream* stream) {
  BRASA_NOTE;
  if (stream->kept) return kInvalidValue;
  for (auto& node : *graph) node->run();
  return 0;
}
BRASA_FAKE int cuGraphExecDestroy(Graph*) { return 0; }
BRASA_FAKE int cuGraphDestroy(Graph* graph) {
  delete graph;
  return 0;
}
