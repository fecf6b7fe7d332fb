#include "runtime/cuda/few_channels.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>

#include "runtime/cuda/ways.h"

namespace brasa::runtime::cuda {
namespace {

constexpr int64_t kOutputs = 64, kElements = 64, kMostColumns = 128, kMostTaps = 4;
constexpr int64_t kSumsOfBlock = 128;
constexpr int kBlocks = 2;  // of a processor

// A kernel on one device.
struct Ready {
  std::shared_ptr<const Module> module;
  Function function;
  int threads, shared_bytes;
};
struct Kernels {
  std::mutex mutex;
  std::map<std::pair<FewChannelsKernel (*)(const FewChannelsKind&), FewChannelsKind>, Ready> ready;
};

const Ready& ready(FewChannelsKernel (*write)(const FewChannelsKind&), const FewChannelsKind& kind, Device& device) {
  Kernels& all = kept_of<Kernels>(device);
  std::lock_guard lock(all.mutex);
  auto it = all.ready.find({write, kind});
  if (it != all.ready.end()) return it->second;
  FewChannelsKernel kernel = write(kind);
  std::shared_ptr<const Module> module =
      device.load({"nvptx+sm_90a", {{kernel.name}}, {kernel.text.begin(), kernel.text.end()}});
  Function function = module->kernel(kernel.name);
  return all.ready[{write, kind}] = {std::move(module), function, kernel.threads, kernel.shared_bytes};
}

void launch(const Ready& kernel, int64_t blocks, std::initializer_list<Slot> slots, Device& device, Stream stream) {
  device.launch({.kernel = kernel.function,
                 .slots = std::span(slots.begin(), slots.size()),
                 .count = blocks,
                 .threads = kernel.threads,
                 .scratch_bytes = static_cast<size_t>(kernel.shared_bytes)},
                stream);
}

bool all_are(const std::vector<int64_t>& v, int64_t value) {
  return std::all_of(v.begin(), v.end(), [&](int64_t x) { return x == value; });
}

}  // namespace

bool takes_few_channels(const Convolution& c, const Device& device) {
  constexpr int kHopper = 9;
  constexpr int64_t kChunk = 16, kMostRows = 1 << 20;  // numbers of 32 bits count them
  if (device.properties().limits.major != kHopper || !is_reduced_floating(c.dtype)) return false;
  if (c.computed == Computed::Image || c.stride.size() != 2) return false;
  if (!all_are(c.stride, 1) || !all_are(c.dilation, 1) || !all_are(c.padding, 0)) return false;
  int64_t channels = c.weight[3], columns = c.result[2], rows = c.result[0] * c.result[1];
  bool whole = channels == c.image[3] && channels % 8 == 0 && channels * c.weight[2] == kElements;
  auto aligned = [&](const void* p) { return alignment(p, kChunk) == kChunk; };
  return whole && rows > 0 && columns > 0 && c.weight[0] == kOutputs && c.weight[1] <= kMostTaps &&
         columns <= kMostColumns && rows <= kMostRows && aligned(c.image_data) && aligned(c.weight_data) &&
         aligned(c.result_data);
}

void run_few_channels(const Convolution& c, Device& device, Stream stream) {
  FewChannelsKind kind{c.dtype, static_cast<int>(c.weight[3]), static_cast<int>(c.weight[1]),
                       static_cast<int>(c.result[2])};
  int64_t rows = c.result[0] * c.result[1], blocks = std::min<int64_t>(rows, kBlocks * device.properties().processors);
  auto address = [](const void* p) { return reinterpret_cast<Slot>(p); };
  auto size = [](int64_t n) { return static_cast<Slot>(n); };
  Slot width = size(c.image[2] * c.image[3] * size_of(c.dtype));
  auto convolve = [&](const Ready& kernel, const void* other, void* to) {
    launch(kernel, blocks,
           {address(c.image_data), address(other), address(to), size(rows), size(blocks), size(c.result[1]), width},
           device, stream);
  };
  if (c.computed == Computed::Result)
    return convolve(ready(few_channels_forward, kind, device), c.weight_data, c.result_data);
  int64_t weights = kOutputs * kind.taps * kElements;
  auto bytes = static_cast<size_t>(blocks * weights * size_of(DType::Float32));
  void* sums = device.allocate(bytes, stream);  // of each block
  convolve(ready(few_channels_by_weight, kind, device), c.result_data, sums);
  launch(ready(few_channels_sum, kind, device), weights / kSumsOfBlock,
         {address(sums), address(c.weight_data), size(blocks)}, device, stream);
  device.deallocate(sums, bytes, stream);
}

}  // namespace brasa::runtime::cuda
