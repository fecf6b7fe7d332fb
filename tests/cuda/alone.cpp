// Exported programs for a GPU on a fake driver, which runs a GPU's loops as the host's code: against the same function in this process.
#define ALONE_CUDA
#include "../export/loaded.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include <brasa/brasa.h>
#include <brasa/control_flow.h>
#include <brasa/nn.h>
#include <brasa/optim.h>
#include <brasa/serialize.h>

#include "error_of.h"
#include "fake.h"

namespace brasa {
namespace {

// By which programs find it when they load it by its name.
fakes::Control& driver() {
  test::use_fakes();
  return test::fake_driver();
}

ExportOptions emulated(std::vector<DynamicSize> dynamic = {}) {
  driver();
  ExportOptions o = alone(std::move(dynamic));
  o.targets = {"emu"};
  return o;
}

void expect_same(Loaded& program, const std::vector<Tensor>& in, const std::vector<Tensor>& want) {
  std::vector<Tensor> out;
  for (const Tensor& t : want) out.push_back(full(t.sizes(), NAN, TensorOptions(t.scalar_type())));
  ASSERT_EQ(program.run(in, out), ALONE_OK) << program.context.message;
  ASSERT_EQ(program.at<decltype(alone_wait)>("alone_wait")(&program.context), ALONE_OK) << program.context.message;
  for (size_t i = 0; i < want.size(); ++i) EXPECT_TRUE(allclose(out[i], want[i], 1e-4, 1e-5)) << i;
}

TEST(CudaAlone, LayersOfAnySize) {
  Folder folder;
  nn::Sequential net(nn::Conv2d(nn::Conv2dOptions(3, 8, 3).padding(1)), nn::BatchNorm2d(8), nn::ReLU(),
                     nn::AdaptiveAvgPool2d(1), nn::Flatten(), nn::Linear(8, 5), nn::LayerNorm(std::vector<int64_t>{5}));
  net->eval();
  auto f = [&](const Tensor& x) { return net->forward(x).softmax(1); };
  NoGradGuard no_grad;
  Loaded program(export_(f, {rand({2, 3, 8, 8})}, emulated({{0, 0, 1, 16}})), folder.path);
  for (int64_t n : {1, 3, 16}) {
    Tensor x = rand({n, 3, 8, 8});
    expect_same(program, {x}, {f(x)});
  }
  EXPECT_EQ(program.context.level, 0);
  Tensor x = rand({3 * 192 + 1}), shifted = x.slice(0, 1).view({3, 3, 8, 8});
  std::vector<Tensor> out = {empty({3, 5})};
  EXPECT_EQ(program.run({shifted}, out), ALONE_INPUT);
  EXPECT_STREQ(program.context.message, "input 0 is not aligned to 16 bytes");
}

TEST(CudaAlone, BranchesAndLoops) {
  Folder folder;
  nn::LSTM lstm(nn::LSTMOptions(3, 5));
  auto f = [&](const Tensor& x) {
    Tensor h = std::get<0>(lstm(x));
    Tensor y = cond(x.sum() > 0, [&](Tensor a) { return a.tanh(); }, [&](Tensor a) { return a * 2; }, h);
    Tensor grown = while_loop([](Tensor, Tensor n) { return n < 5; },
                              [](Tensor a, Tensor n) { return std::pair(a * 1.5 + 1, n + 1); }, x, zeros({}, kInt64))
                       .first;
    return std::pair(y, grown);
  };
  NoGradGuard no_grad;
  Loaded program(export_(f, {rand({4, 2, 3})}, emulated({{0, 0, 1, 50}})), folder.path);
  for (int64_t steps : {1, 5, 50})
    for (double shift : {0.0, -1.0}) {
      Tensor x = rand({steps, 2, 3}) + shift;
      auto [y, grown] = f(x);
      expect_same(program, {x}, {y, grown});
    }
}

// A run waits for the number of rows, of which there may be none.
TEST(CudaAlone, SizesThatDependOnValues) {
  Folder folder;
  auto f = [](const Tensor& x) {
    Tensor rows = x.index({x.select(1, 0) > 0});
    return std::vector<Tensor>{rows * 2, rows.sum(), rows.matmul(rows.t())};
  };
  Loaded program(export_(f, {rand({6, 3})}, emulated({{0, 0, 1, 40}})), folder.path);
  for (int64_t n : {1, 6, 40})
    for (double shift : {-9.0, 0.0, 9.0}) {
      Tensor x = randn({n, 3}) + shift;
      expect_same(program, {x}, f(x));
    }
}

// What a check found is told by whoever waits, once.
TEST(CudaAlone, ChecksAreToldLater) {
  Folder folder;
  Tensor table = rand({4, 2});
  auto f = [&](const Tensor& i) { return table.index_select(0, i); };
  Loaded program(export_(f, {zeros({3}, kInt64)}, emulated()), folder.path);
  std::vector<Tensor> out = {empty({3, 2})};
  auto wait = program.at<decltype(alone_wait)>("alone_wait");
  EXPECT_EQ(program.run({full({3}, 4, kInt64)}, out), ALONE_OK);
  EXPECT_EQ(wait(&program.context), ALONE_CHECK);
  EXPECT_NE(std::string(program.context.message).find("index_select"), std::string::npos) << program.context.message;
  expect_same(program, {full({3}, 3, kInt64)}, {f(full({3}, 3, kInt64))});
}

// A training step with random numbers: as the processor's program, state and all.
TEST(CudaAlone, ATrainingStep) {
  manual_seed(5);
  nn::Sequential net(nn::Linear(6, 12), nn::Dropout(0.25), nn::GELU(), nn::Linear(12, 2));
  optim::AdamW optimizer(net->parameters(), optim::AdamWOptions(1e-2));
  auto step = [&](const Tensor& x, const Tensor& y) {
    optimizer.zero_grad();
    Tensor loss = nn::functional::mse_loss(net->forward(x), y);
    loss.backward();
    optimizer.step();
    return loss;
  };
  std::vector<Tensor> in = {rand({5, 6}), rand({5, 2})}, got, want;
  auto run = [&](ExportOptions options, std::vector<Tensor>& losses) {
    Folder folder;
    options.modules = {{"", net.ptr()}};
    options.optimizers = {{"optimizer", &optimizer}};
    Loaded program(export_(step, in, options), folder.path);
    for (int k = 0; k < 4; ++k) {
      std::vector<Tensor> out = {zeros({})};
      ASSERT_EQ(program.run(in, out), ALONE_OK) << program.context.message;
      losses.push_back(out[0]);
    }
    fs::path file = folder.path / "state.safetensors";
    ASSERT_EQ(program.save(file), ALONE_OK) << program.context.message;
    losses.push_back(load_tensors(file.string()).at("0.weight"));
    program.reset();
    ASSERT_EQ(program.load(file), ALONE_OK) << program.context.message;
    ASSERT_EQ(program.save(folder.path / "again"), ALONE_OK);
    EXPECT_TRUE(load_tensors((folder.path / "again").string()).at("0.weight").equal(losses.back()));
    std::vector<Tensor> out = {zeros({})};
    program.context.state = program.state.data() + 4;
    EXPECT_EQ(program.run(in, out), ALONE_MEMORY);
    EXPECT_STREQ(program.context.message, "the state is not aligned to 16 bytes");
  };
  run(emulated(), got);
  for (int k = 0; k < 4; ++k) want.push_back(step(in[0], in[1]).detach());
  want.push_back(net->parameters()[0].detach());
  ASSERT_EQ(got.size(), want.size());
  for (size_t k = 0; k < got.size(); ++k) EXPECT_TRUE(allclose(got[k], want[k], 1e-4, 1e-5)) << k;
}

// Found when the program is opened, where sizes do not vary.
TEST(CudaAlone, LibrariesComputeProductsAndConvolutions) {
  Folder folder;
  manual_seed(2);
  test::Counted lt_ways(test::fake_cublaslt(), "cublasLtMatmulAlgoGetHeuristic"),
      products(test::fake_cublaslt(), "cublasLtMatmul"), plans(test::fake_cudnn(), "plan"),
      convolutions(test::fake_cudnn(), "forward");
  nn::Sequential net(nn::Conv2d(nn::Conv2dOptions(3, 8, 3).padding(1).stride(2)), nn::ReLU(),
                     nn::Conv2d(nn::Conv2dOptions(8, 8, 3).groups(2)), nn::Flatten(), nn::Linear(32, 6));
  Tensor w = rand({5, 6, 4}), line = rand({4, 3, 2});
  auto f = [&](const Tensor& x) {
    Tensor y = net->forward(x);
    return std::tuple(y.softmax(1), y.expand({5, -1, 6}).matmul(w), conv1d(x.select(2, 0), line));
  };
  NoGradGuard no_grad;
  ExportOptions options = emulated();
  options.libraries = {"cublaslt", "cudnn"};
  Tensor x = rand({2, 3, 8, 8});
  ExportedProgram exported = export_(f, {x}, options);
  Loaded program(exported, folder.path);
  EXPECT_EQ(lt_ways(), 2);
  EXPECT_EQ(plans(), 3);
  for (int run : {1, 2}) {
    auto [a, b, c] = f(x);
    expect_same(program, {x}, {a, b, c});
    EXPECT_EQ(products(), 2 * run);
    EXPECT_EQ(convolutions(), 3 * run);
  }
  EXPECT_EQ(lt_ways(), 2);
  EXPECT_EQ(plans(), 3);
  std::vector<Tensor> out = {empty({2, 6}), empty({5, 2, 4}), empty({2, 4, 7})};
  test::fake_cublaslt().fail("cublasLtMatmul", 1, 14);
  EXPECT_EQ(program.run({x}, out), ALONE_DEVICE);
  EXPECT_STREQ(program.context.message, "cublasLtMatmul failed with status 14");
  alone_context other;
  // The first product has a bias, without which it would be asked for again.
  test::fake_cublaslt().fail("cublasLtMatmulAlgoGetHeuristic", 2, 15);
  EXPECT_EQ(program.at<decltype(alone_open)>("alone_open")(&other, nullptr), ALONE_DEVICE);
  EXPECT_NE(std::string(other.message).find("cuBLASLt knows no way to multiply"), std::string::npos) << other.message;
  EXPECT_EQ(other.device, nullptr);
}

// Found again where sizes are new; without elements there is nothing to compute.
TEST(CudaAlone, LibrariesAndSizesThatVary) {
  Folder folder;
  test::fake_cudnn();
  test::Counted ways(test::fake_cublaslt(), "cublasLtMatmulAlgoGetHeuristic");
  Tensor w = rand({6, 3}).to(kBFloat16), bias = rand({3}).to(kBFloat16);
  auto f = [&](const Tensor& x, const Tensor& y) {
    Tensor wide = x.matmul(x.t());
    return std::pair(addmm(bias, y, w).to(kFloat32), wide);
  };
  ExportOptions options = emulated({{0, 0, 1, 9, "rows"}, {1, 0, 1, 9, "rows"}});
  options.libraries = {"cublaslt"};
  Loaded program(export_(f, {rand({4, 2}), rand({4, 6}).to(kBFloat16)}, options), folder.path);
  int found = 0;
  for (int64_t rows : {4, 4, 9}) {
    Tensor x = rand({rows, 2}), y = rand({rows, 6}).to(kBFloat16);
    auto [a, b] = f(x, y);
    std::vector<Tensor> out = {empty({rows, 3}), empty({rows, rows})};
    ASSERT_EQ(program.run({x, y}, out), ALONE_OK) << program.context.message;
    EXPECT_TRUE(allclose(out[0], a, 1e-2, 1e-2));
    EXPECT_TRUE(allclose(out[1], b));
    int now = ways();
    EXPECT_TRUE(rows == 4 && found ? now == found : now > found);
    found = now;
  }
}

TEST(CudaAlone, LibrariesThatAreUnknownOrMissing) {
  auto f = [](const Tensor& x) { return x.matmul(x); };
  ExportOptions options = emulated();
  options.libraries = {"cublas"};
  EXPECT_EQ(error_of([&] { export_(f, {rand({2, 2})}, options); }),
            "export: there is no library 'cublas' for exported programs; these are: cublaslt, cudnn");
  options.libraries = {"cublaslt"};
  ExportOptions host = options;
  host.targets = {"x86-64"};
  EXPECT_EQ(error_of([&] { export_(f, {rand({2, 2})}, host); }),
            "export: 'cublaslt' is a library for GPUs; the program is for x86-64");
#ifndef BRASA_SANITIZED
  Folder folder;
  std::string path = (folder.path / "net").string(), in = path + ".in", out = path + ".out";
  export_(f, {rand({2, 2})}, options).write_executable(path);
  save_tensors({{"in0", rand({2, 2})}}, in);
  auto run = [&](const std::string& libraries) {
    return std::system(("LD_LIBRARY_PATH=" + libraries + " " + path + " " + in + " " + out + " 2>/dev/null").c_str());
  };
  EXPECT_EQ(run(BRASA_FAKES), 0);
  fs::create_symlink(fs::path(BRASA_FAKES) / "libcuda.so.1", folder.path / "libcuda.so.1");
  EXPECT_NE(run(folder.path.string()), 0);
#endif
}

TEST(CudaAlone, FailuresAreStatuses) {
  Folder folder;
  Tensor w = rand({4, 4});
  Loaded program(export_([&](const Tensor& x) { return x.matmul(w); }, {rand({4, 4})}, emulated()), folder.path);
  fakes::Control& fake = driver();
  auto open = program.at<decltype(alone_open)>("alone_open");
  alone_context other;
  fake.fail("cuDeviceGetCount", 1, 100);
  EXPECT_EQ(open(&other, nullptr), ALONE_DEVICE);
  EXPECT_STREQ(other.message, "cuDeviceGetCount failed: injected");
  fake.fail("cuMemAlloc_v2", 2, 2);  // behind the word that checks write
  test::Counted unloaded(fake, "cuModuleUnload");
  EXPECT_EQ(open(&other, nullptr), ALONE_MEMORY);
  EXPECT_STREQ(other.message, "the GPU has no memory for 128 bytes of weights");
  EXPECT_GT(unloaded(), 0);
  EXPECT_EQ(other.device, nullptr);
  std::vector<Tensor> out = {empty({4, 4})};
  fake.fail("cuLaunchKernel", 1, 700);
  EXPECT_EQ(program.run({rand({4, 4})}, out), ALONE_DEVICE);
  EXPECT_STREQ(program.context.message, "cuLaunchKernel failed: injected");
  Tensor x = rand({4, 4});
  expect_same(program, {x}, {x.matmul(w)});
}

// Whichever is closed first, and again in a thread that had one.
TEST(CudaAlone, ContextsHoldTheGpu) {
  Folder folder;
  Tensor w = rand({4, 4}), x = rand({4, 4});
  Loaded program(export_([&](const Tensor& a) { return a.matmul(w); }, {x}, emulated()), folder.path);
  auto open = program.at<decltype(alone_open)>("alone_open");
  auto close = program.at<decltype(alone_close)>("alone_close");
  auto allocate = program.at<decltype(alone_allocate)>("alone_allocate");
  auto release = program.at<decltype(alone_free)>("alone_free");
  alone_context other;
  ASSERT_EQ(open(&other, nullptr), ALONE_OK) << other.message;
  close(&program.context);
  void* memory = nullptr;
  EXPECT_EQ(allocate(&other, 16, &memory), ALONE_OK) << other.message;
  release(&other, memory);
  close(&other);
  ASSERT_EQ(open(&program.context, nullptr), ALONE_OK) << program.context.message;
  expect_same(program, {x}, {x.matmul(w)});
}

// A block has 48 KiB of shared memory, which a kernel's reductions have one after the other.
TEST(CudaAlone, ManySumsOfColumnsInOneKernel) {
  Folder folder;
  setenv("BRASA_PTXAS", "/there/is/no/ptxas", 1);
  ExportOptions options = emulated();
  options.targets = {"nvptx+sm_80"};
  auto count = [](const Tensor& x) {
    std::vector<Tensor> out;
    for (int i = 0; i < 8; ++i) out.push_back((x == i).sum(0));
    return out;
  };
  export_(count, {zeros({512, 64}, kUInt8)}, options).write_object((folder.path / "p").string());
  unsetenv("BRASA_PTXAS");
  std::ifstream file(folder.path / "p.o", std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  long shared = 0;
  for (size_t at = 0; (at = text.find("\t.shared .align", at)) != text.npos; ++at)
    shared += std::strtol(text.c_str() + text.find('[', at) + 1, nullptr, 10);
  EXPECT_GT(shared, 0);
  EXPECT_LE(shared, 48 << 10);
}

// What is written for a real GPU: the text of its kernels for each architecture, of which one is loaded.
TEST(CudaAlone, ProgramsForArchitectures) {
  Folder folder;
  setenv("BRASA_PTXAS", "/there/is/no/ptxas", 1);
  ExportOptions options = emulated();
  options.targets = {"nvptx+sm_80", "nvptx+sm_90"};
  ExportedProgram exported = export_([](const Tensor& x) { return x.exp().sum(1); }, {rand({4, 4})}, options);
  unsetenv("BRASA_PTXAS");
  EXPECT_NE(exported.header().find("alone_status alone_wait("), std::string::npos);
  EXPECT_EQ(exported.header().find("ALONE_CUDA"), std::string::npos);
  EXPECT_EQ(exported.header().find("parallel"), std::string::npos);
  test::Counted loaded(driver(), "cuModuleLoadDataEx"), launched(driver(), "cuLaunchKernel");
  Loaded program(exported, folder.path);
  EXPECT_EQ(program.context.level, 90);
  std::vector<Tensor> out = {empty({4})};
  EXPECT_EQ(program.run({rand({4, 4})}, out), ALONE_OK) << program.context.message;
  EXPECT_EQ(loaded(), 1);
  EXPECT_GE(launched(), 1);
}

// The assembler's files are those of one call: other threads export, too.
TEST(CudaAlone, MachineCodeIsMadeInAFolderOfItsOwn) {
  Folder folder;
  std::string tool = (folder.path / "ptxas").string(), log = (folder.path / "log").string();
  std::ofstream(tool) << "#!/bin/sh\necho \"$5\" >>" << log << "\ncp \"$5\" \"$4\"\n";
  fs::permissions(tool, fs::perms::owner_all);
  setenv("BRASA_PTXAS", tool.c_str(), 1);
  ExportOptions options = emulated();
  options.targets = {"nvptx+sm_80"};
  for (int i : {1, 2}) export_([=](const Tensor& x) { return x * i; }, {rand({4})}, options);
  unsetenv("BRASA_PTXAS");
  std::ifstream lines(log);
  std::string first, second;
  ASSERT_TRUE(lines >> first >> second);
  EXPECT_NE(first, second);
  EXPECT_FALSE(fs::exists(fs::path(first).parent_path()));
}

TEST(CudaAlone, AnExecutable) {
#ifdef BRASA_SANITIZED
  GTEST_SKIP() << "what stands in for the driver needs a sanitizer's runtime, which the executable has not";
#endif
  Folder folder;
  Tensor w = rand({4, 3}), x = rand({2, 4});
  ExportedProgram exported = export_([&](const Tensor& a) { return a.matmul(w).tanh(); }, {x}, emulated());
  std::string path = (folder.path / "net").string(), in = path + ".in", out = path + ".out";
  exported.write_executable(path);
  save_tensors({{"in0", x}}, in);
  auto run = [&](const std::string& libraries) {
    return std::system(("LD_LIBRARY_PATH=" + libraries + " " + path + " " + in + " " + out + " 2>/dev/null").c_str());
  };
  ASSERT_EQ(run(BRASA_FAKES), 0);
  EXPECT_TRUE(allclose(load_tensors(out).at("out0"), x.matmul(w).tanh()));
}

}  // namespace
}  // namespace brasa
