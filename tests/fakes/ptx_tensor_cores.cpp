#include <brasa/elements.h>

#include <cmath>

#include "ptx_machine.h"

// Products of matrices, by warps and by groups of four, and what loads their operands.
namespace brasa::fakes {
namespace {

template <class T>
void multiply(Machine& m, const Instruction& i, uint32_t lanes) {
  whole_warp(i, lanes);
  auto& r = *m.registers;
  float a[16][16], b[16][8], sum[16][8];
  for (int l = 0; l < kLanes; ++l) {
    int group = l / 4, pair = 2 * (l % 4);
    for (int e = 0; e < 2; ++e) {
      for (int k = 0; k < 4; ++k)
        a[group + 8 * (k % 2)][pair + e + 8 * (k / 2)] = part<T>(u(r[i.operands[1].list[k]][l]), e);
      for (int k = 0; k < 2; ++k) b[pair + e + 8 * k][group] = part<T>(u(r[i.operands[2].list[k]][l]), e);
      for (int k = 0; k < 2; ++k)
        sum[group + 8 * k][pair + e] = std::bit_cast<float>(u(r[i.operands[3].list[2 * k + e]][l]));
    }
  }
  for (int row = 0; row < 16; ++row)
    for (int column = 0; column < 8; ++column)
      for (int k = 0; k < 16; ++k) sum[row][column] += a[row][k] * b[k][column];
  for (int l = 0; l < kLanes; ++l)
    for (int k = 0; k < 4; ++k)
      r[i.operands[0].list[k]][l] = std::bit_cast<uint32_t>(sum[l / 4 + 8 * (k / 2)][2 * (l % 4) + k % 2]);
}

// Of float32: the tensor cores read TF32, which is its first 19 bits.
void multiply_tf32(Machine& m, const Instruction& i, uint32_t lanes) {
  whole_warp(i, lanes);
  auto& r = *m.registers;
  auto tf32 = [&](int reg, int lane) { return std::bit_cast<float>(u(r[reg][lane]) & 0xffffe000u); };
  float a[16][8], b[8][8];
  for (int l = 0; l < kLanes; ++l)
    for (int k = 0; k < 4; ++k) {
      a[l / 4 + 8 * (k % 2)][l % 4 + 4 * (k / 2)] = tf32(i.operands[1].list[k], l);
      if (k < 2) b[l % 4 + 4 * k][l / 4] = tf32(i.operands[2].list[k], l);
    }
  for (int l = 0; l < kLanes; ++l)
    for (int e = 0; e < 4; ++e) {
      float sum = std::bit_cast<float>(u(r[i.operands[3].list[e]][l]));
      for (int k = 0; k < 8; ++k) sum += a[l / 4 + 8 * (e / 2)][k] * b[k][2 * (l % 4) + e % 2];
      r[i.operands[0].list[e]][l] = std::bit_cast<uint32_t>(sum);
    }
}
// To the nearest, ties away from zero.
float tf32(float v) {
  if (!std::isfinite(v)) return v;
  return std::bit_cast<float>((std::bit_cast<uint32_t>(v) + 0x1000u) & 0xffffe000u);
}

// Where a descriptor says that an element lies: rows of 128 bytes, each eight as far behind the eight before as it says, and each 64 columns as far
// behind those before, 16 bytes i of a row at i ^ (row & 7).
uint64_t element_of_rows(uint64_t descriptor, int row, int column) {
  constexpr uint64_t kSwizzledBy128 = 1, kRowBytes = 128;
  constexpr int kColumns = 64;
  if (descriptor >> 62 != kSwizzledBy128) fail("a matrix that is not swizzled by 128 bytes");
  uint64_t start = (descriptor & 0x3fff) << 4, eight_rows = (descriptor >> 32 & 0x3fff) << 4;
  uint64_t more_columns = (descriptor >> 16 & 0x3fff) << 4;
  if (start % 1024 >= kRowBytes && column) fail("rows that do not begin at a multiple of 1024 bytes");
  if (column >= kColumns && more_columns < kRowBytes * 8) fail("more columns than a row has, and nothing says where");
  uint64_t at =
      start + row / 8 * eight_rows + row % 8 * kRowBytes + column / kColumns * more_columns + 2 * (column % kColumns);
  return at ^ (at >> 7 & 7) << 4;
}
// What a matrix reads of shared memory, until it is awaited; the first warp of a group stands for all four.
void note_reads(Machine& m, uint64_t descriptor, int rows, int columns) {
  constexpr int kChunk = 8;
  if (m.first_thread / kLanes % 4 != 0) return;
  for (int row = 0; row < rows; ++row)
    for (int column = 0; column < columns; column += kChunk)
      m.products.reads.push_back(element_of_rows(descriptor, row, column));
}
// Of the 64 rows that four warps multiply together this warp has 16. Operands are registers or descriptors of shared memory; the last number says
// whether a row of the right one is a column of the result, or what is summed over.
template <class T>
void multiply_group(Machine& m, const Instruction& i, uint32_t lanes) {
  whole_warp(i, lanes);
  constexpr int kDepth = 16, kRows = 16;
  auto& r = *m.registers;
  auto columns = static_cast<int>(2 * i.operands[0].list.size());
  bool transposed = i.operands.back().value, adds = m.get(i.operands[3], 0);
  bool left_transposed = i.operands.size() == 8 && i.operands[6].value;
  auto number = [&](const Operand& matrix, int row, int column) {
    T v;
    std::memcpy(static_cast<void*>(&v), m.shared_at(element_of_rows(m.get(matrix, 0), row, column), 2), sizeof v);
    return static_cast<float>(v);
  };
  auto note = [&](const Operand& matrix, int across, bool by_rows) {
    if (matrix.kind != Operand::List)
      note_reads(m, m.get(matrix, 0), by_rows ? kDepth : across, by_rows ? across : kDepth);
  };
  note(i.operands[1], 4 * kRows, left_transposed);
  note(i.operands[2], columns, transposed);
  std::vector<std::array<float, kDepth>> a(kRows), b(static_cast<size_t>(columns));
  int first = static_cast<int>(m.first_thread) / kLanes % 4 * kRows;
  for (int row = 0; row < kRows; ++row)
    for (int k = 0; k < kDepth; ++k)
      if (i.operands[1].kind == Operand::List)
        a[row][k] = part<T>(u(r[i.operands[1].list[row / 8 + k / 8 * 2]][4 * (row % 8) + k % 8 / 2]), k % 2);
      else
        a[row][k] = left_transposed ? number(i.operands[1], k, first + row) : number(i.operands[1], first + row, k);
  for (int column = 0; column < columns; ++column)
    for (int k = 0; k < kDepth; ++k)
      b[column][k] = transposed ? number(i.operands[2], k, column) : number(i.operands[2], column, k);
  for (int l = 0; l < kLanes; ++l)
    for (size_t e = 0; e < i.operands[0].list.size(); ++e) {
      const auto& left = a[l / 4 + e / 2 % 2 * 8];
      const auto& right = b[e / 4 * 8 + 2 * (l % 4) + e % 2];
      uint64_t& to = r[i.operands[0].list[e]][l];
      float sum = adds ? std::bit_cast<float>(u(to)) : 0;
      for (int k = 0; k < kDepth; ++k) sum += left[k] * right[k];
      to = std::bit_cast<uint32_t>(sum);
    }
}

template <bool transposed>
void load_matrices(Machine& m, const Instruction& i, uint32_t lanes) {
  whole_warp(i, lanes);
  for (int k = 0; k < 4; ++k) {
    uint16_t matrix[8][8];
    for (int row = 0; row < 8; ++row) std::memcpy(matrix[row], m.shared_at(m.get(i.operands[1], 8 * k + row), 16), 16);
    for (int l = 0; l < kLanes; ++l) {
      int row = l / 4, column = 2 * (l % 4);
      uint32_t low = transposed ? matrix[column][row] : matrix[row][column];
      uint32_t high = transposed ? matrix[column + 1][row] : matrix[row][column + 1];
      (*m.registers)[i.operands[0].list[k]][l] = low | high << 16;
    }
  }
}

}  // namespace

void add_tensor_cores(Instructions& all) {
  using M = Machine&;
  using I = const Instruction&;
  using L = uint32_t;
  all.insert({
      {"ldmatrix.sync.aligned.m8n8.x4.shared.b16", load_matrices<false>},
      {"ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16", load_matrices<true>},
      {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", multiply<Half>},
      {"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", multiply<BFloat16>},
      {"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", multiply_tf32},
      {"wgmma.fence.sync.aligned", [](M, I, L) {}},
      {"wgmma.commit_group.sync.aligned", [](M m, I, L) { m.products.commit(); }},
      {"wgmma.wait_group.sync.aligned",
       [](M m, I i, L) {
         for (uint64_t at : m.products.await(i.operands[0].value)) m.shared_at(at, 16, 0, Uses::Read, true);
       }},
      {"wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16", multiply_group<Half>},
      {"wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16", multiply_group<BFloat16>},
      {"wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16", multiply_group<Half>},
      {"wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16", multiply_group<BFloat16>},
      {"wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16", multiply_group<Half>},
      {"wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16", multiply_group<BFloat16>},
      {"wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16", multiply_group<Half>},
      {"wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16", multiply_group<BFloat16>},
      {"cvt.rna.tf32.f32", [](M m, I i, L l) { of_float(m, i, l, tf32); }},
  });
}

}  // namespace brasa::fakes
