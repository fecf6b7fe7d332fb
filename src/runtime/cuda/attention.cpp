#include "runtime/cuda/attention.h"

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

namespace brasa::runtime::cuda {
namespace {

constexpr int64_t kMostFeatures = 128;
constexpr double kLog2E = 1.4426950408889634;

using KindOfPass = std::pair<AttentionPass, AttentionKind>;
WrittenKernel write(const KindOfPass& kind) { return attention_kernel(kind.first, kind.second); }
const ReadyKernel& ready(AttentionPass pass, const AttentionKind& kind, Device& device) {
  return ready_kernel(write, KindOfPass(pass, kind), device);
}

int64_t element_of(const AttentionKind& kind) { return static_cast<int64_t>(size_of(kind.dtype)); }

bool is_aligned(const Heads& h, const AttentionKind& kind) {
  constexpr int64_t kChunk = 16;
  return reinterpret_cast<uintptr_t>(h.data) % kChunk == 0 &&
         ((h.batch | h.head | h.row | kind.features) * element_of(kind)) % kChunk == 0;
}

Slot bits(float v) { return std::bit_cast<uint32_t>(v); }

// Blocks of twice the rows read the other side half as often. There must be enough of them, and registers for what they keep, or shared
// memory for float32.
bool is_tall(AttentionPass pass, const Attention& a, int64_t rows, const Device& device) {
  constexpr int64_t kMostTallFeatures = 64, kRows = 128;
  constexpr size_t kBytesOfFloat32 = size_t{103} << 10;
  bool gradient = pass == AttentionPass::ByQuery || pass == AttentionPass::ByKey;
  int64_t blocks = a.batches * a.heads * (rows / kRows);
  const runtime::Properties& properties = device.properties();
  bool room = a.kind.dtype != DType::Float32 || properties.limits.shared_memory_per_block_optin >= kBytesOfFloat32;
  return gradient && room && a.kind.features <= kMostTallFeatures &&
         (a.kind.tall || blocks >= 2 * int64_t{properties.processors});
}

// Groups of warps have 64 rows of 128 bytes; of few rows they would have nothing to do.
bool is_grouped(const Attention& a, const AttentionKind& kind, const Device& device) {
  constexpr int64_t kFeatures = 64, kFewest = 128;
  return kind.wide && is_reduced_floating(kind.dtype) && kind.features == kFeatures &&
         std::min(a.queries, a.keys) >= kFewest && is_hopper(device);
}
AttentionKind kind_of(const Attention& a, std::initializer_list<Heads> heads, const Device& device) {
  AttentionKind kind = a.kind;
  for (const Heads& h : heads) kind.wide = kind.wide && is_aligned(h, kind);
  kind.grouped = is_grouped(a, kind, device);
  return kind;
}

// As the kernels read their parameters.
void add_heads(std::vector<Slot>& slots, const Heads& h, int64_t bytes) {
  slots.push_back(reinterpret_cast<Slot>(h.data));
  for (int64_t step : {h.batch, h.head, h.row}) slots.push_back(static_cast<Slot>(bytes * step));
}
void launch(AttentionPass pass, const Attention& a, int64_t rows, std::initializer_list<Heads> heads,
            std::initializer_list<void*> vectors, std::initializer_list<Heads> sums, Device& device, Stream stream) {
  AttentionKind kind = kind_of(a, heads, device);
  kind.grouped = kind.grouped && pass != AttentionPass::ForwardOfHead;
  kind.tall = !kind.grouped && is_tall(pass, a, rows, device);
  const ReadyKernel& kernel = ready(pass, kind, device);
  int64_t tiles = (rows + kernel.rows - 1) / kernel.rows;
  std::vector<Slot> slots;
  for (int64_t size : {a.queries, a.keys, a.heads, a.batches * a.heads, tiles})
    slots.push_back(static_cast<Slot>(size));
  slots.push_back(bits(static_cast<float>(a.scale * kLog2E)));
  slots.push_back(bits(static_cast<float>(a.scale)));
  for (const Heads& h : heads) add_heads(slots, h, element_of(kind));
  for (void* v : vectors) slots.push_back(reinterpret_cast<Slot>(v));
  if (kind.summed)
    for (const Heads& h : sums) add_heads(slots, h, size_of(DType::Float32));
  kernel.launch(a.batches * a.heads * tiles, slots, device, stream);
}

// Of much fewer rows most of a block would have nothing to do.
bool is_of_head(const Attention& a, const Device& device) {
  constexpr int64_t kFeatures = 64, kFewest = kMostRowsOfHead / 2;
  constexpr size_t kBytes = size_t{211} << 10;
  bool rows = std::max(a.queries, a.keys) <= kMostRowsOfHead && std::min(a.queries, a.keys) > kFewest;
  return rows && !a.kind.causal && a.kind.features == kFeatures && a.kind.wide &&
         device.properties().limits.shared_memory_per_block_optin >= kBytes;
}

// How many blocks share a head's keys: where there are processors without a head, as many as have enough rows each. Clusters of eight find no
// place while what runs before is still there.
int blocks_of_row(const AttentionOfRow& a, const Device& device) {
  const int most = a.kind.early ? 4 : 8;
  constexpr int64_t kRows = 64;
  if (!is_hopper(device)) return 1;
  int64_t heads = a.batches * a.heads;
  int blocks = 1;
  while (blocks < most && 2 * blocks * heads <= device.properties().processors && a.keys > blocks * kRows) blocks *= 2;
  return blocks;
}

}  // namespace

bool takes_attention(DType dtype, int64_t features) {
  return (is_reduced_floating(dtype) || dtype == DType::Float32) && features >= 1 && features <= kMostFeatures;
}

bool takes_attention_of_row(DType dtype, int64_t features) {
  constexpr int64_t kChunk = 8;
  return is_reduced_floating(dtype) && takes_attention(dtype, features) && features % kChunk == 0;
}

void run_attention_of_row(const AttentionOfRow& a, const Heads& out, Device& device, Stream stream) {
  std::vector<Heads> read = {a.query, a.key, a.value};
  if (a.kind.cached) read.insert(read.end(), {a.key_row, a.value_row});
  AttentionKind kind = a.kind;
  for (const Heads& h : read) kind.wide = kind.wide && is_aligned(h, kind);
  kind.blocks = blocks_of_row(a, device);
  kind.early = a.kind.early && kind.blocks > 1;
  const ReadyKernel& kernel = ready(AttentionPass::OfRow, kind, device);
  std::vector<Slot> slots = {static_cast<Slot>(a.keys), static_cast<Slot>(a.heads),
                             bits(static_cast<float>(a.scale * kLog2E))};
  add_heads(slots, a.mask, 1);
  add_heads(slots, out, element_of(kind));
  for (const Heads& h : read) add_heads(slots, h, element_of(kind));
  if (a.kind.cached) slots.push_back(reinterpret_cast<Slot>(a.at));
  kernel.launch(a.batches * a.heads * kind.blocks, slots, device, stream);
}

void run_attention(const Attention& a, const Heads& out, Device& device, Stream stream) {
  bool grouped = kind_of(a, {a.query, a.key, a.value, out}, device).grouped;
  AttentionPass pass = !grouped && is_of_head(a, device) ? AttentionPass::ForwardOfHead : AttentionPass::Forward;
  launch(pass, a, a.queries, {a.query, a.key, a.value, out}, {a.log_sum}, {}, device, stream);
}

void run_attention_backward(const Attention& given, const Heads& ct, const Heads& out, const AttentionGradients& to,
                            const AttentionGradients* sums, Device& device, Stream stream) {
  Attention a = given;
  a.kind.summed = sums != nullptr;
  const AttentionGradients of_rows = sums ? *sums : AttentionGradients{};
  if (is_reduced_floating(a.kind.dtype) && is_of_head(a, device))
    return launch(AttentionPass::BackwardOfHead, a, a.keys,
                  {a.query, a.key, a.value, ct, out, to.by_query, to.by_key, to.by_value}, {a.log_sum},
                  {of_rows.by_query, of_rows.by_key, of_rows.by_value}, device, stream);
  auto bytes = static_cast<size_t>(a.batches * a.heads * a.queries * size_of(DType::Float32));
  Scratch inner(bytes, device, stream);  // Σ ct · out over the features
  launch(AttentionPass::ByQuery, a, a.queries, {a.query, a.key, a.value, ct, out, to.by_query},
         {a.log_sum, inner.data()}, {of_rows.by_query}, device, stream);
  launch(AttentionPass::ByKey, a, a.keys, {a.query, a.key, a.value, ct, to.by_key, to.by_value},
         {a.log_sum, inner.data()}, {of_rows.by_key, of_rows.by_value}, device, stream);
}

bool sums_attention_gradients(DType dtype, int64_t features) {
  constexpr int64_t kMost = 64;  // blocks of wider heads have fewer rows than a sum
  return is_reduced_floating(dtype) && features >= 1 && features <= kMost;
}

}  // namespace brasa::runtime::cuda
