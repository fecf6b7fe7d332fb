#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "capture/backend.h"
#include "compiler/compile.h"
#include "compiler/kernels/codegen_client.h"
#include "compiler/loops/layout.h"
#include "compiler/pipeline.h"
#include "ir/text.h"
#include "ptxas.h"
#include "runtime/device.h"
#include "support/error.h"
#include "train.h"

// Every kernel of the demo's training step (forward, backward, Adam in one graph) for a GPU.
namespace brasa {
namespace {

constexpr const char* kTarget = "nvptx+sm_90";

std::string data_path() {
  const char* elsewhere = std::getenv("BRASA_DEMO_DATA");
  return elsewhere ? elsewhere : DEMO_DATA;
}

std::vector<double> losses(const std::string& backend, int steps, const std::string& device = "cpu") {
  using demo::Digits;
  static const Digits digits(data_path(), Digits::Part::Train), held_out(data_path(), Digits::Part::HeldOut);
  demo::Settings settings;
  settings.backend = backend;
  settings.device = device;
  settings.epochs = 2;
  return demo::train(digits, held_out, true, settings, [](const demo::Progress&) {}, steps).losses;
}

void expect_same(const std::vector<double>& cpu, const std::vector<double>& gpu, const char* what) {
  ASSERT_EQ(cpu.size(), gpu.size());
  double largest = 0;
  std::printf("step  %-12s %-12s relative difference\n", "CPU", what);
  for (size_t i = 0; i < cpu.size(); ++i) {
    double d = std::fabs(gpu[i] - cpu[i]) / std::fabs(cpu[i]);
    largest = std::max(largest, d);
    std::printf("%4zu  %-12.8f %-12.8f %.2e\n", i + 1, cpu[i], gpu[i], d);
    EXPECT_LE(d, 1e-4) << "step " << i + 1;
  }
  std::printf("largest relative difference of %zu losses: %.2e\n", cpu.size(), largest);
}

// The loops of the step's kernels, caught on their way.
std::vector<std::string> texts_of_step() {
  static std::vector<std::string> texts;
  if (!texts.empty()) return texts;
  capture::register_backend("catch-gpu-kernels",
                            [](const ir::Graph& graph, ir::Facts& facts, const CompileOptions& given,
                               runtime::Device& device, const capture::Lasting& lasting) {
                              compiler::CompilerOptions options;
                              options.target = kTarget;
                              auto cpu = capture::find_backend("inductor")(graph, facts, given, device, lasting);
                              for (std::string& t : compiler::kernel_texts(graph, facts, options))
                                texts.push_back(std::move(t));
                              return cpu;
                            });
  losses("catch-gpu-kernels", 1);
  return texts;
}

TEST(Demo, EveryKernelAssembles) {
  std::vector<std::unique_ptr<ir::Graph>> graphs;
  std::vector<std::string> texts;
  for (const std::string& text : texts_of_step()) {
    graphs.push_back(ir::parse(text, compiler::find_loop_level_op));
    graphs.back()->name = str("kernel_", graphs.size());
    texts.push_back(ir::print(*graphs.back()));
  }
  EXPECT_GE(graphs.size(), 40u);
  // What a launch allows.
  for (const auto& g : graphs) {
    compiler::KernelLayout layout = compiler::layout_of(*g);
    EXPECT_LE(layout.threads, 1024) << ir::print(*g);
    EXPECT_GE(layout.count.constant(), 1) << ir::print(*g);
    EXPECT_NE(ir::print(*g).find("loop::store"), std::string::npos) << ir::print(*g);
    EXPECT_LE(layout.count.constant(), 0x7fffffff) << ir::print(*g);
  }
  EXPECT_TRUE(std::any_of(graphs.begin(), graphs.end(),
                          [](const std::unique_ptr<ir::Graph>& g) { return compiler::layout_of(*g).calls > 1; }));
  runtime::KernelImage image = compiler::compile_kernel_texts(texts, kTarget);
  EXPECT_EQ(image.entries.size(), graphs.size());
  if (!test::have_ptxas()) GTEST_SKIP() << "ptxas is not installed: PTX was made but not assembled";
  std::string ptx(image.code.begin(), image.code.end());
  EXPECT_TRUE(test::assembles(ptx, "-arch=sm_90 -O1"));
}

// The whole training step where a GPU's faults show.
TEST(Demo, EmulatedGpuGivesTheCpusLosses) {
  expect_same(losses("inductor", 10), losses("inductor", 10, "emu"), "emulated");
}

TEST(Demo, EmulatedGpuGivesTheCpusLossesEager) {
  expect_same(losses("eager", 3), losses("eager", 3, "emu"), "emulated");
}

TEST(Demo, GpuGivesTheCpusLosses) {
  if (device_count(kCUDA) == 0) GTEST_SKIP() << "there is no GPU";
  expect_same(losses("inductor", 30), losses("inductor", 30, "cuda"), "GPU");
}

TEST(Demo, WithoutAGpuTheErrorSaysSo) {
  if (device_count(kCUDA) > 0) GTEST_SKIP() << "there is a GPU";
  try {
    losses("inductor", 1, "cuda");
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("device 'cuda'"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace brasa
