#if __has_include(<cuda.h>)
#include <cuda.h>
#define BRASA_CHECK_PROTOTYPES
#endif

#include "runtime/cuda/graph.h"

#include <cstddef>

#include "support/error.h"

namespace brasa::runtime::cuda {
namespace {

// Whatever other threads ask of the driver meanwhile.
constexpr int kRelaxed = 2;
constexpr int kStartsEarly = 6;
// More shared memory of a block than that is asked for by itself.
constexpr unsigned kUsualShared = 48 << 10;
constexpr int kMostShared = 8;
#ifdef BRASA_CHECK_PROTOTYPES
static_assert(kRelaxed == CU_STREAM_CAPTURE_MODE_RELAXED);
static_assert(kStartsEarly == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
static_assert(kMostShared == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
static_assert(sizeof(LaunchAttribute) == sizeof(CUlaunchAttribute) &&
              offsetof(LaunchAttribute, value) == offsetof(CUlaunchAttribute, value) &&
              sizeof(LaunchConfig) == sizeof(CUlaunchConfig) &&
              offsetof(LaunchConfig, attributes) == offsetof(CUlaunchConfig, attrs));
static_assert(sizeof(NodeParameters) == sizeof(CUDA_KERNEL_NODE_PARAMS_v2) &&
              offsetof(NodeParameters, parameters) == offsetof(CUDA_KERNEL_NODE_PARAMS_v2, kernelParams) &&
              offsetof(NodeParameters, context) == offsetof(CUDA_KERNEL_NODE_PARAMS_v2, ctx));
#endif

}  // namespace

Parameters::Parameters(const Launch& l) {
  BRASA_CHECK(l.count <= 0x7fffffff, "CUDA: a grid of ", l.count, " blocks is larger than the hardware's limit");
  constexpr size_t kSlotsOfMap = sizeof(TensorMap) / sizeof(Slot);
  BRASA_CHECK(l.slots.size() + kSlotsOfMap * l.maps.size() <= kMostSlots, "CUDA: a kernel takes ", l.slots.size(),
              " arguments and ", l.maps.size(), " maps, the limit is ", kMostSlots);
  for (const TensorMap& m : l.maps) slots_.push_back(const_cast<TensorMap*>(&m));
  for (const Slot& s : l.slots.first(l.calls > 1 ? 1 : l.slots.size())) slots_.push_back(const_cast<Slot*>(&s));
  node_.function = static_cast<FunctionHandle>(const_cast<void*>(l.kernel));
  node_.blocks[0] = static_cast<unsigned>(l.count);
  node_.blocks[1] = static_cast<unsigned>(l.calls);
  node_.threads[0] = static_cast<unsigned>(l.threads);
  node_.shared_bytes = static_cast<unsigned>(l.scratch_bytes);
  node_.blocks[2] = node_.threads[1] = node_.threads[2] = 1;
  node_.parameters = slots_.data();
}

void Parameters::launch(StreamHandle stream, bool early) {
  if (node_.shared_bytes > kUsualShared)
    check(driver().function_set_attribute(node_.function, kMostShared, static_cast<int>(node_.shared_bytes)),
          "cuFuncSetAttribute");
  if (early) {
    LaunchAttribute attribute = {kStartsEarly, {}, {}};
    attribute.value.allowed = 1;
    LaunchConfig config = {
        {node_.blocks[0], node_.blocks[1], 1}, {node_.threads[0], 1, 1}, node_.shared_bytes, stream, &attribute, 1};
    return check(driver().launch_with(&config, node_.function, node_.parameters, nullptr), "cuLaunchKernelEx");
  }
  check(driver().launch_kernel(node_.function, node_.blocks[0], node_.blocks[1], 1, node_.threads[0], 1, 1,
                               node_.shared_bytes, stream, node_.parameters, nullptr),
        "cuLaunchKernel");
}

void Parameters::change(RunnableHandle runnable, NodeHandle node) {
  check(driver().graph_change(runnable, node, &node_), "cuGraphExecKernelNodeSetParams");
}

void begin_capture(StreamHandle stream) { check(driver().begin_capture(stream, kRelaxed), "cuStreamBeginCapture"); }

NodeHandle last_of(StreamHandle stream) {
  int status = 0;
  const NodeHandle* last = nullptr;
  size_t count = 0;
  check(driver().capture_info(stream, &status, nullptr, nullptr, &last, &count), "cuStreamGetCaptureInfo");
  BRASA_ASSERT(count == 1, "a launch that is kept is ", count, " nodes of CUDA's graph");
  return last[0];
}

Graph::Graph(StreamHandle stream) {
  check(driver().end_capture(stream, &graph_), "cuStreamEndCapture");
  Result r = driver().graph_instantiate(&runnable_, graph_, 0);
  if (r == 0) return;
  driver().graph_destroy(graph_);
  check(r, "cuGraphInstantiate");
}

Graph::~Graph() {
  driver().runnable_destroy(runnable_);
  driver().graph_destroy(graph_);
}

}  // namespace brasa::runtime::cuda
