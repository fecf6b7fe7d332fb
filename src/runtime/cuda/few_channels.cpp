#include "runtime/cuda/few_channels.h"

#include <algorithm>
#include <array>

namespace brasa::runtime::cuda {
namespace {

constexpr int64_t kOutputs = 64, kElements = 64, kMostColumns = 128, kMostTaps = 4;
constexpr int64_t kSumsOfBlock = 128;
constexpr int kBlocks = 2;  // of a processor

bool all_are(const std::vector<int64_t>& v, int64_t value) {
  return std::all_of(v.begin(), v.end(), [&](int64_t x) { return x == value; });
}

}  // namespace

bool takes_few_channels(const Convolution& c, const Device& device) {
  constexpr int64_t kChunk = 16, kMostRows = 1 << 20;  // numbers of 32 bits count them
  if (!is_hopper(device) || !is_reduced_floating(c.dtype)) return false;
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
  auto convolve = [&](const ReadyKernel& kernel, const void* other, Slot to) {
    const std::array slots = {address(c.image_data), address(other),    to,   size(rows),
                              size(blocks),          size(c.result[1]), width};
    kernel.launch(blocks, slots, device, stream);
  };
  if (c.computed == Computed::Result)
    return convolve(ready_kernel(few_channels_forward, kind, device), c.weight_data, address(c.result_data));
  int64_t weights = kOutputs * kind.taps * kElements;
  auto bytes = static_cast<size_t>(blocks * weights * size_of(DType::Float32));
  Scratch sums(bytes, device, stream);  // of each block
  convolve(ready_kernel(few_channels_by_weight, kind, device), c.result_data, sums.address());
  const std::array slots = {sums.address(), address(c.weight_data), size(blocks)};
  ready_kernel(few_channels_sum, kind, device).launch(weights / kSumsOfBlock, slots, device, stream);
}

}  // namespace brasa::runtime::cuda
