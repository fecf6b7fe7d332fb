#include <algorithm>
#include <cmath>
#include <functional>

#include "loops/kernel.h"
#include "loops/on_gpu.h"
#include "ptxas.h"
#include "support/error.h"

namespace brasa::compiler::test {
namespace {

// A kernel with its data; the same object serves ptxas and, where there is one, a GPU.
struct GpuCase {
  std::unique_ptr<ir::Graph> graph = std::make_unique<ir::Graph>(ir::Level::Loops);
  std::vector<std::vector<float>> buffers;
  std::vector<int64_t> sizes;
  size_t result = 0;
  std::vector<float> want;
  double tolerance = 1e-5;
};

// out = tanh(x) + exp(y) for a size that is no multiple of the block.
GpuCase pointwise() {
  GpuCase c;
  c.graph->name = "pointwise";
  LoopBuilder b(*c.graph);
  Expr n = Expr::size(0);
  Value x = b.buffer(DType::Float32, n), y = b.buffer(DType::Float32, n), out = b.buffer(DType::Float32, n);
  Expr block = b.loop("block", ceildiv(n, 256)), thread = b.loop("thread", 256), i = block * 256 + thread;
  Value mask = b.op("lt", {b.index(i), b.index(n)});
  Value v = b.op("add", {b.op("tanh", {b.load(x, i, mask)}), b.op("exp", {b.load(y, i, mask)})});
  b.store(out, i, v, mask);
  c.sizes = {1000};
  c.buffers = {ramp(1000, 0.03, -1.5), ramp(1000, 0.02, -1), std::vector<float>(1000)};
  c.result = 2;
  for (int j = 0; j < 1000; ++j) c.want.push_back(std::tanh(c.buffers[0][j]) + std::exp(c.buffers[1][j]));
  return c;
}

// softmax of rows: maximum and sum over a block's threads.
GpuCase softmax() {
  GpuCase c;
  c.graph->name = "softmax";
  LoopBuilder b(*c.graph);
  constexpr int64_t kThreads = 128;
  Expr rows = Expr::size(0), n = Expr::size(1);
  Value x = b.buffer(DType::Float32, rows * n), out = b.buffer(DType::Float32, rows * n);
  Expr row = b.loop("block", rows), step = b.loop("serial", ceildiv(n, kThreads)), thread = b.loop("thread", kThreads);
  Expr at = step * kThreads + thread;
  Value mask = b.op("lt", {b.index(at), b.index(n)});
  Value v = b.load(x, row * n + at, mask);
  Value masked = b.op("select", {mask, v, b.constant(-INFINITY, DType::Float32)});
  Value top = b.reduce(masked, {step, thread}, "max");
  Value e = b.op("exp", {b.op("sub", {masked, top})});
  Value sum = b.reduce(e, {step, thread}, "add");
  b.store(out, row * n + at, b.op("div", {e, sum}), mask);
  c.sizes = {5, 300};
  c.buffers = {ramp(1500, 0.1), std::vector<float>(1500)};
  c.result = 1;
  c.want.resize(1500);
  for (int r = 0; r < 5; ++r) {
    double total = 0;
    for (int j = 0; j < 300; ++j) total += std::exp(c.buffers[0][r * 300 + j] - 10.0);
    for (int j = 0; j < 300; ++j)
      c.want[r * 300 + j] = static_cast<float>(std::exp(c.buffers[0][r * 300 + j] - 10.0) / total);
  }
  return c;
}

// A transpose through shared memory.
GpuCase transpose() {
  GpuCase c;
  c.graph->name = "transpose";
  LoopBuilder b(*c.graph);
  Value x = b.buffer(DType::Float32, 64 * 64), out = b.buffer(DType::Float32, 64 * 64);
  Expr bi = b.loop("block", 4), bj = b.loop("block", 4), i = b.loop("thread", 16), j = b.loop("thread", 16);
  Value tile = b.stage(b.load(x, (bi * 16 + i) * 64 + bj * 16 + j), {i, j}, "shared");
  b.store(out, (bj * 16 + i) * 64 + bi * 16 + j, b.load(tile, j * 16 + i));
  c.buffers = {ramp(64 * 64), std::vector<float>(64 * 64)};
  c.result = 1;
  c.want.resize(64 * 64);
  for (int p = 0; p < 64; ++p)
    for (int q = 0; q < 64; ++q) c.want[p * 64 + q] = c.buffers[0][q * 64 + p];
  return c;
}

// Every thread keeps a column of a tile in registers.
GpuCase matmul() {
  GpuCase c;
  c.graph->name = "matmul";
  LoopBuilder b(*c.graph);
  Expr depth = Expr::size(0);
  Value x = b.buffer(DType::Float32, depth * 32), y = b.buffer(DType::Float32, depth * 64),
        out = b.buffer(DType::Float32, 32 * 64);
  Expr tile = b.loop("block", 8), column = b.loop("thread", 64), i = b.loop("unroll", 4), k = b.loop("serial", depth);
  Expr row = tile * 4 + i;
  Value p = b.op("mul", {b.load(x, row * depth + k), b.load(y, k * 64 + column)});
  b.store(out, row * 64 + column, b.reduce(p, {k}, "add"));
  c.sizes = {33};
  c.buffers = {ramp(33 * 32, 0.01), ramp(33 * 64, 0.02, -1), std::vector<float>(32 * 64)};
  c.result = 2;
  c.want.resize(32 * 64);
  for (int r = 0; r < 32; ++r)
    for (int q = 0; q < 64; ++q) {
      double s = 0;
      for (int d = 0; d < 33; ++d) s += double{c.buffers[0][r * 33 + d]} * c.buffers[1][d * 64 + q];
      c.want[r * 64 + q] = static_cast<float>(s);
    }
  return c;
}

// sin of huge numbers (the rare branch), a histogram with atomic updates.
GpuCase rare_and_atomic() {
  GpuCase c;
  c.graph->name = "rare";
  LoopBuilder b(*c.graph);
  Value x = b.buffer(DType::Float32, 512), out = b.buffer(DType::Float32, 512), sums = b.buffer(DType::Float32, 4);
  Expr block = b.loop("block", 4), t = b.loop("thread", 128), i = block * 128 + t;
  Value s = b.op("sin", {b.load(x, i)});
  b.store(out, i, s);
  b.store(sums, block, b.op("mul", {s, s}), {}, "add");
  c.buffers = {ramp(512, 1e7, 3), std::vector<float>(512), std::vector<float>(4)};
  c.result = 2;
  c.want.resize(4);
  for (int j = 0; j < 512; ++j) c.want[j / 128] += static_cast<float>(std::pow(std::sin(double{c.buffers[0][j]}), 2));
  c.tolerance = 1e-4;
  return c;
}

// Four neighbours a thread, in buffers that begin at multiples of 16 bytes: one access each.
GpuCase neighbours() {
  GpuCase c;
  c.graph->name = "neighbours";
  LoopBuilder b(*c.graph);
  Value x = b.buffer(DType::Float32, 1024), out = b.buffer(DType::Float32, 1024);
  Expr block = b.loop("block", 2), thread = b.loop("thread", 128), lane = b.loop("unroll", 4, 4);
  Expr i = (block * 128 + thread) * 4 + lane;
  Value v = b.load(x, i);
  b.store(out, i, b.op("mul", {v, v}));
  c.buffers = {ramp(1024, 0.03, -1.5), std::vector<float>(1024)};
  c.result = 1;
  for (float f : c.buffers[0]) c.want.push_back(f * f);
  return c;
}

// Sums of columns, each of 8 threads that lie 32 apart.
GpuCase columns() {
  GpuCase c;
  c.graph->name = "columns";
  LoopBuilder b(*c.graph);
  Value x = b.buffer(DType::Float32, 64 * 96), out = b.buffer(DType::Float32, 96);
  Expr block = b.loop("block", 3), column = b.loop("thread", 32, 2), step = b.loop("serial", 8);
  Expr row = b.loop("thread", 8);
  Value sum = b.reduce(b.load(x, (step * 8 + row) * 96 + block * 32 + column), {step, row}, "add");
  b.store(out, block * 32 + column, sum);
  c.buffers = {ramp(64 * 96, 0.01), std::vector<float>(96)};
  c.result = 1;
  c.want.resize(96);
  for (int j = 0; j < 64 * 96; ++j) c.want[j % 96] += c.buffers[0][j];
  return c;
}

// Sums of four columns each, of 16 threads: 8 of them are in one warp.
GpuCase narrow_columns() {
  GpuCase c;
  c.graph->name = "narrow_columns";
  LoopBuilder b(*c.graph);
  Value x = b.buffer(DType::Float32, 64 * 12), out = b.buffer(DType::Float32, 12);
  Expr block = b.loop("block", 3), column = b.loop("thread", 4, 2), step = b.loop("serial", 4);
  Expr row = b.loop("thread", 16);
  Value sum = b.reduce(b.load(x, (step * 16 + row) * 12 + block * 4 + column), {step, row}, "add");
  b.store(out, block * 4 + column, sum);
  c.buffers = {ramp(64 * 12, 0.01), std::vector<float>(12)};
  c.result = 1;
  c.want.resize(12);
  for (int j = 0; j < 64 * 12; ++j) c.want[j % 12] += c.buffers[0][j];
  return c;
}

// Rows of 8 with one of zeros before them: neighbours that are read where a condition holds.
GpuCase conditional() {
  GpuCase c;
  c.graph->name = "conditional";
  LoopBuilder b(*c.graph);
  Value x = b.buffer(DType::Float32, 1016), out = b.buffer(DType::Float32, 1024);
  Expr thread = b.loop("thread", 128), lane = b.loop("unroll", 8, 8), i = thread * 8 + lane;
  Value mask = b.op("ge", {b.index(thread), b.index(1)});
  b.store(out, i, b.load(x, i - 8, mask));
  c.buffers = {ramp(1016, 0.03), std::vector<float>(1024, 1)};
  c.result = 1;
  c.want.assign(8, 0);
  c.want.insert(c.want.end(), c.buffers[0].begin(), c.buffers[0].end());
  return c;
}

// Three calls in a launch, each with its own buffers.
GpuCase calls() {
  GpuCase c;
  c.graph->name = "calls";
  LoopBuilder b(*c.graph);
  Value x = b.buffer(DType::Float32, 512), out = b.buffer(DType::Float32, 512);
  Expr block = b.loop("block", 4), thread = b.loop("thread", 128), i = block * 128 + thread;
  Value v = b.load(x, i);
  b.store(out, i, b.op("mul", {v, v}));
  b.loop("call", 3);
  for (int call = 0; call < 3; ++call) {
    c.buffers.push_back(ramp(512, 0.03, call));
    c.buffers.emplace_back(512);
  }
  c.result = 5;
  for (float f : c.buffers[4]) c.want.push_back(f * f);
  return c;
}

const std::vector<std::pair<const char*, std::function<GpuCase()>>> kCases = {
    {"pointwise", pointwise},  {"softmax", softmax},
    {"transpose", transpose},  {"matmul", matmul},
    {"rare", rare_and_atomic}, {"neighbours", neighbours},
    {"columns", columns},      {"narrow columns", narrow_columns},
    {"calls", calls},          {"conditional", conditional}};

std::string ptx_of(const ir::Graph& graph, const std::string& target = "nvptx+sm_90") {
  runtime::KernelImage image = image_of(graph, target);
  return {image.code.begin(), image.code.end()};
}

TEST(Nvptx, NeighboursAreOneAccess) {
  std::string ptx = ptx_of(*neighbours().graph);
  EXPECT_NE(ptx.find("ld.global.v4.f32"), std::string::npos) << ptx;
  EXPECT_NE(ptx.find("st.global.v4.f32"), std::string::npos) << ptx;
}

TEST(Nvptx, ConditionalNeighboursAreOneAccess) {
  std::string ptx = ptx_of(*conditional().graph);
  EXPECT_NE(ptx.find("ld.global.v4.f32"), std::string::npos) << ptx;
  EXPECT_EQ(ptx.find("bra"), std::string::npos) << ptx;
}

// Though each is rounded to a narrow float on the way.
TEST(Nvptx, NarrowNeighboursAreOneAccess) {
  GpuCase c;
  c.graph->name = "narrow";
  LoopBuilder b(*c.graph);
  Value x = b.buffer(DType::BFloat16, 2048), out = b.buffer(DType::BFloat16, 2048);
  Expr block = b.loop("block", 2), thread = b.loop("thread", 128), lane = b.loop("unroll", 8, 8);
  Expr i = (block * 128 + thread) * 8 + lane;
  b.store(out, i, b.convert(b.op("erf", {b.convert(b.load(x, i), DType::Float32)}), DType::BFloat16));
  std::string ptx = ptx_of(*c.graph);
  EXPECT_NE(ptx.find("ld.global.v4"), std::string::npos) << ptx;
  EXPECT_EQ(ptx.find("ld.global.u16"), std::string::npos) << ptx;
  EXPECT_NE(ptx.find("ex2.approx"), std::string::npos) << ptx;
}

// Exponentials and what is made of them take a GPU's instructions, in place of polynomials and divisions.
TEST(Nvptx, FunctionsByInstructions) {
  constexpr std::pair<const char*, const char*> kInstructions[] = {
      {"exp", "ex2.approx"}, {"tanh", "rcp.approx"}, {"rsqrt", "rsqrt.approx"}};
  for (auto [function, instruction] : kInstructions) {
    ir::Graph graph(ir::Level::Loops);
    graph.name = "function";
    LoopBuilder b(graph);
    Value x = b.buffer(DType::Float32, 128), out = b.buffer(DType::Float32, 128);
    Expr i = b.loop("thread", 128);
    b.store(out, i, b.op(function, {b.load(x, i)}));
    std::string ptx = ptx_of(graph);
    EXPECT_NE(ptx.find(instruction), std::string::npos) << ptx;
    for (const char* slow : {"div.rn", "sqrt.rn", "cvt.r"}) EXPECT_EQ(ptx.find(slow), std::string::npos) << ptx;
  }
}

// 1 + erf x, a GELU's factor, is one power of 2 and one polynomial.
TEST(Nvptx, OneAndErf) {
  auto multiplications = [](bool beside_one) {
    ir::Graph graph(ir::Level::Loops);
    graph.name = "function";
    LoopBuilder b(graph);
    Value x = b.buffer(DType::Float32, 128), out = b.buffer(DType::Float32, 128);
    Expr i = b.loop("thread", 128);
    Value v = b.op("erf", {b.load(x, i)});
    b.store(out, i, beside_one ? b.op("add", {b.constant(1.0, DType::Float32), v}) : v);
    std::string ptx = ptx_of(graph);
    int count = 0;
    for (size_t at = 0; (at = ptx.find("fma.rn", at)) != ptx.npos; ++at) ++count;
    return count;
  };
  EXPECT_LT(multiplications(true), 9);
  EXPECT_GT(multiplications(false), 9);
}

// A GELU's derivative by tanh has 1 + tanh and 1 - tanh², of which only a reduced float is made: neither needs tanh's own digits near 0.
TEST(Nvptx, OneLessSquaredTanh) {
  auto ptx = [](bool tanh_too) {
    ir::Graph graph(ir::Level::Loops);
    graph.name = "function";
    LoopBuilder b(graph);
    Value x = b.buffer(DType::Float32, 128), out = b.buffer(DType::BFloat16, 128);
    Expr i = b.loop("thread", 128);
    Value t = b.op("tanh", {b.load(x, i)}), one = b.constant(1.0, DType::Float32);
    Value both = b.op("mul", {b.op("add", {t, one}), b.op("sub", {one, b.op("mul", {t, t})})});
    b.store(out, i, b.convert(tanh_too ? b.op("add", {both, t}) : both, DType::BFloat16));
    return ptx_of(graph);
  };
  EXPECT_EQ(ptx(false).find("abs.f32"), std::string::npos) << ptx(false);
  EXPECT_NE(ptx(true).find("abs.f32"), std::string::npos) << ptx(true);
}

// The greatest of bfloat16 numbers is found in pairs, before they are widened.
TEST(Nvptx, MaximaOfPairs) {
  ir::Graph graph(ir::Level::Loops);
  graph.name = "maxima";
  LoopBuilder b(graph);
  Value x = b.buffer(DType::BFloat16, 4096), out = b.buffer(DType::Float32, 128);
  Expr thread = b.loop("thread", 128), step = b.loop("unroll", 4), lane = b.loop("unroll", 8, 8);
  Value v = b.convert(b.load(x, (step * 128 + thread) * 8 + lane), DType::Float32);
  b.store(out, thread, b.reduce(v, {step, lane}, "max"));
  std::string ptx = ptx_of(graph);
  size_t pairs = 0, singles = 0;
  for (size_t at = 0; (at = ptx.find("max.NaN.bf16x2", at)) != ptx.npos; ++at) ++pairs;
  for (size_t at = 0; (at = ptx.find("max.NaN.f32", at)) != ptx.npos; ++at) ++singles;
  EXPECT_EQ(pairs, 15U) << ptx;
  EXPECT_EQ(singles, 1U) << ptx;
}

// A row's label is compared with a thread's neighbours in 32 bits.
TEST(Nvptx, LabelsIn32Bits) {
  ir::Graph graph(ir::Level::Loops);
  graph.name = "labels";
  LoopBuilder b(graph);
  Value labels = b.buffer(DType::Int64, 16), out = b.buffer(DType::Float32, 16 * 1024);
  Expr row = b.loop("block", 16), thread = b.loop("thread", 128), lane = b.loop("unroll", 8, 8);
  Value found = b.op("eq", {b.load(labels, row), b.index(thread * 8 + lane)});
  b.store(out, row * 1024 + thread * 8 + lane, b.convert(found, DType::Float32));
  std::string ptx = ptx_of(graph);
  EXPECT_EQ(ptx.find("setp.eq.s64"), std::string::npos) << ptx;
  EXPECT_NE(ptx.find("setp.eq.s32"), std::string::npos) << ptx;
}

// What a loop writes in between does not part what it reads.
TEST(Nvptx, NeighboursBesideSumsAreOneAccess) {
  GpuCase c;
  c.graph->name = "sums";
  LoopBuilder b(*c.graph);
  Value x = b.buffer(DType::BFloat16, 4096), out = b.buffer(DType::Float32, 4096);
  Value sums = b.buffer(DType::Float32, 512), squares = b.buffer(DType::Float32, 512);
  Expr thread = b.loop("thread", 128), lane = b.loop("unroll", 4, 4), row = b.loop("serial", 8);
  Expr column = thread * 4 + lane, i = row * 512 + column;
  Value v = b.convert(b.load(x, i), DType::Float32);
  b.store(sums, column, b.reduce(v, {row}, "add"));
  Value square = b.op("mul", {v, v});
  b.store(out, i, square);
  b.store(squares, column, b.reduce(square, {row}, "add"));
  std::string ptx = ptx_of(*c.graph);
  EXPECT_EQ(ptx.find("ld.global.u16"), std::string::npos) << ptx;
  EXPECT_NE(ptx.find("st.global.v4.f32"), std::string::npos) << ptx;
}

// A bfloat16 is widened from the word whose half it is, by one instruction.
TEST(Nvptx, HalvesOfWords) {
  ir::Graph graph(ir::Level::Loops);
  graph.name = "halves";
  LoopBuilder b(graph);
  Value x = b.buffer(DType::BFloat16, 1024), out = b.buffer(DType::Float32, 1024);
  Expr thread = b.loop("thread", 128), lane = b.loop("unroll", 8, 8), i = thread * 8 + lane;
  b.store(out, i, b.convert(b.load(x, i), DType::Float32));
  std::string ptx = ptx_of(graph);
  for (const char* instruction : {"ld.global.v4.u32", "shl.b32", "and.b32"})
    EXPECT_NE(ptx.find(instruction), std::string::npos) << ptx;
  for (const char* instruction : {"b16", "u16"}) EXPECT_EQ(ptx.find(instruction), std::string::npos) << ptx;
}

// Places that 32 bits hold are divided as such.
TEST(Nvptx, ShortDivisions) {
  auto divides_long = [](Expr blocks) {
    ir::Graph graph(ir::Level::Loops);
    graph.name = "quotients";
    LoopBuilder b(graph);
    Value x = b.buffer(DType::Float32, 1 << 20), out = b.buffer(DType::Float32, blocks * 128);
    Expr block = b.loop("block", blocks), thread = b.loop("thread", 128), i = block * 128 + thread;
    b.store(out, i, b.load(x, mod(floordiv(i, 7), 1000)));
    return ptx_of(graph).find("mul.hi.u64") != std::string::npos;
  };
  EXPECT_FALSE(divides_long(4096));
  EXPECT_TRUE(divides_long(Expr::size(0)));
}

// What adds up tensors goes through them from their ends.
TEST(Nvptx, SumsBeginAtTheEnd) {
  for (bool sums : {false, true}) {
    ir::Graph graph(ir::Level::Loops);
    graph.name = "sums";
    LoopBuilder b(graph);
    Value x = b.buffer(DType::Float32, 4096), out = b.buffer(DType::Float32, 4096);
    Expr block = b.loop("block", 128), thread = b.loop("thread", 32), i = block * 32 + thread,
         row = b.loop("serial", 16);
    b.store(out, i, sums ? b.reduce(b.load(x, mod(i + row, 4096)), {row}, "add") : b.load(x, i));
    EXPECT_EQ(ptx_of(graph).find("%nctaid.x") != std::string::npos, sums);
  }
}

// A block of 256 threads leaves room for another one.
TEST(Nvptx, TwoBlocksAtOnce) {
  for (int64_t threads : {256, 1024}) {
    ir::Graph graph(ir::Level::Loops);
    graph.name = "blocks";
    LoopBuilder b(graph);
    Value x = b.buffer(DType::Float32, threads), out = b.buffer(DType::Float32, threads);
    Expr i = b.loop("thread", threads);
    b.store(out, i, b.load(x, i));
    EXPECT_EQ(ptx_of(graph).find(".minnctapersm 2") != std::string::npos, threads == 256) << threads;
  }
}

// What a thread reads is on its way before it waits for others.
TEST(Nvptx, ReadsComeBeforeExchanges) {
  GpuCase c;
  c.graph->name = "rows";
  LoopBuilder b(*c.graph);
  Value x = b.buffer(DType::Float32, 512), y = b.buffer(DType::Float32, 512), out = b.buffer(DType::Float32, 512);
  Expr block = b.loop("block", 4), thread = b.loop("thread", 32), lane = b.loop("unroll", 4, 4);
  Expr i = (block * 32 + thread) * 4 + lane;
  Value sum = b.reduce(b.load(x, i), {lane, thread}, "add");
  b.store(out, i, b.op("mul", {b.load(y, i), sum}));
  std::string ptx = ptx_of(*c.graph);
  EXPECT_LT(ptx.rfind("ld.global"), ptx.find("shfl.sync")) << ptx;
}

// And before it waits for other kernels, if none of them writes it.
TEST(Nvptx, WhatNobodyWritesIsReadBeforeItWaits) {
  GpuCase c;
  c.graph->name = "early";
  LoopBuilder b(*c.graph);
  Value x = b.buffer(DType::Float32, 512), y = b.buffer(DType::Float32, 512), out = b.buffer(DType::Float32, 4);
  Expr block = b.loop("block", 4), thread = b.loop("thread", 32), lane = b.loop("unroll", 4, 4);
  Expr i = (block * 32 + thread) * 4 + lane;
  Value sum = b.reduce(b.op("mul", {b.load(x, i), b.load(y, i)}), {lane, thread}, "add");
  b.store(out, block, sum);
  b.unwritten({y});
  std::string ptx = ptx_of(*c.graph);
  size_t first = ptx.find("ld.global"), waits = ptx.find("griddepcontrol.wait");
  EXPECT_LT(ptx.find("griddepcontrol.launch_dependents"), first) << ptx;
  EXPECT_LT(first, waits) << ptx;
  EXPECT_EQ(ptx.find("ld.global", first + 1), ptx.find("ld.global", waits)) << ptx;
}

// So is what several iterations of a loop read before the first of them writes.
TEST(Nvptx, ReadsOfIterationsComeBeforeWrites) {
  GpuCase c;
  c.graph->name = "iterations";
  LoopBuilder b(*c.graph);
  Value x = b.buffer(DType::Float32, 4096), out = b.buffer(DType::Float32, 4096), sums = b.buffer(DType::Float32, 512);
  Expr thread = b.loop("thread", 128), lane = b.loop("unroll", 4, 4), row = b.loop("serial", 8, 1, 4);
  Expr column = thread * 4 + lane, i = row * 512 + column;
  Value v = b.load(x, i);
  b.store(sums, column, b.reduce(v, {row}, "add"));
  b.store(out, i, b.op("mul", {v, v}));
  std::string ptx = ptx_of(*c.graph);
  size_t at = 0;
  for (int read = 0; read < 4; ++read) at = ptx.find("ld.global", at + 1);
  EXPECT_LT(at, ptx.find("st.global")) << ptx;
}

TEST(Nvptx, CallsOfALaunchReadTheirParametersWhereTheyAre) {
  std::string ptx = ptx_of(*calls().graph);
  EXPECT_NE(ptx.find("%ctaid.y"), std::string::npos) << ptx;
  EXPECT_EQ(ptx.find(".local"), std::string::npos) << ptx;
}

TEST(Nvptx, AssemblesForEveryArchitecture) {
  bool have = brasa::test::have_ptxas();
  for (const auto& [name, make] : kCases)
    for (const char* sm : {"75", "80", "86", "90"}) {
      GpuCase c = make();
      std::string ptx = ptx_of(*c.graph, str("nvptx+sm_", sm));
      EXPECT_NE(ptx.find(str(".entry ", c.graph->name)), std::string::npos) << ptx;
      if (!have) continue;
      EXPECT_TRUE(brasa::test::assembles(ptx, str("-arch=sm_", sm))) << name << "\n" << ptx;
    }
  if (!have) GTEST_SKIP() << "ptxas is not installed: PTX was made but not assembled";
}

TEST(Nvptx, RunsOnAGpu) {
  if (device_count(kCUDA) == 0) GTEST_SKIP() << "there is no GPU";
  for (const auto& [name, make] : kCases) {
    GpuCase c = make();
    std::vector<float> got = on_gpu(*c.graph, c.buffers, c.sizes, c.result);
    for (size_t j = 0; j < c.want.size(); ++j)
      ASSERT_NEAR(got[j], c.want[j], c.tolerance * std::max(1.0f, std::fabs(c.want[j]))) << name << " " << j;
  }
}

TEST(Nvptx, MissingGpuIsAUserError) { EXPECT_THROW(runtime::device_of(Device(kCUDA, 100)), Error); }

}  // namespace
}  // namespace brasa::compiler::test
