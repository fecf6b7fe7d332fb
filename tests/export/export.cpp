// Programs that run alone, loaded back as shared libraries: against the same function in this process.
#include <brasa/export_program.h>

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <iterator>
#include <thread>

#include <brasa/brasa.h>
#include <brasa/control_flow.h>
#include <brasa/error.h>
#include <brasa/fft.h>
#include <brasa/nn.h>
#include <brasa/npy.h>
#include <brasa/serialize.h>

#include "error_of.h"
#include "export/loaded.h"

namespace brasa {
namespace {

TEST(Export, ALayerAtEveryLevel) {
  manual_seed(3);
  Folder folder;
  Tensor w = randn({24, 40}), b = randn({24});
  auto f = [&](const Tensor& x) { return (x.matmul(w.t()) + b).softmax(1); };
  Loaded program(export_(f, {rand({5, 40})}, alone()), folder.path);
  Tensor x = randn({5, 40}), want = f(x);
  for (int level = program.context.level; level >= 0; --level) {
    program.context.level = level;
    std::vector<Tensor> out = {full({5, 24}, NAN)};
    ASSERT_EQ(program.run({x}, out), ALONE_OK) << program.context.message;
    EXPECT_TRUE(allclose(out[0], want, 1e-5, 1e-6)) << level;
  }
}

TEST(Export, AProgramIsReplacedWhenTheNewOneIsWhole) {
  Folder folder;
  std::string path = (folder.path / "p").string(), linker = (folder.path / "cc").string();
  ExportedProgram program = export_([](const Tensor& x) { return x + 1; }, {rand({3})}, alone());
  program.write_executable(path);
  auto bytes = [&](const std::string& file) {
    std::ifstream in(file, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  std::string whole = bytes(path);
  EXPECT_NE(fs::status(path).permissions() & fs::perms::owner_exec, fs::perms::none);
  // It is given `-o FILE` first, writes a part, and ends.
  std::ofstream(linker) << "#!/bin/sh\necho part > \"$2\"\nexit 1\n";
  fs::permissions(linker, fs::perms::owner_all);
  ::setenv("BRASA_CC", linker.c_str(), 1);
  EXPECT_THROW(program.write_executable(path), Error);
  EXPECT_THROW(program.write_shared(path), Error);
  ::unsetenv("BRASA_CC");
  EXPECT_EQ(bytes(path), whole);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path), fs::directory_iterator()), 2) << "p and cc";
  program.write_executable(path);
  EXPECT_EQ(bytes(path), whole);
}

// What is open for writing anywhere cannot be executed.
TEST(Export, AProgramRunsAsSoonAsItIsThere) {
  Folder folder;
  std::string path = (folder.path / "p").string(), linker = (folder.path / "cc").string();
  ExportedProgram program = export_([](const Tensor& x) { return x + 1; }, {rand({3})}, alone());
  std::ofstream(linker) << "#!/bin/sh\ncp /bin/true \"$2\"\n";
  fs::permissions(linker, fs::perms::owner_all);
  ::setenv("BRASA_CC", linker.c_str(), 1);
  program.write_executable(path);
  pid_t writer = ::fork();
  if (writer == 0)
    for (;;) program.write_executable(path);
  ::unsetenv("BRASA_CC");
  for (int i = 0; i < 300; ++i) ASSERT_EQ(std::system(path.c_str()), 0) << i;
  ::kill(writer, SIGKILL);
  ::waitpid(writer, nullptr, 0);
}

TEST(Export, SizesVaryWithinTheirRanges) {
  Folder folder;
  auto f = [](const Tensor& x, const Tensor& y) {
    return std::make_pair((x * y.unsqueeze(1)).sum(0), x.reshape({x.size(0) * 2, -1}) + 1);
  };
  Loaded program(export_(f, {rand({4, 6}), rand({4})}, alone({{0, 0, 1, 40, "rows"}, {1, 0, 1, 40, "rows"}})),
                 folder.path);
  for (int64_t rows : {1, 2, 3, 7, 40}) {
    Tensor x = rand({rows, 6}), y = rand({rows});
    auto [sum, more] = f(x, y);
    std::vector<Tensor> out = {full({6}, NAN), full({2 * rows, 3}, NAN)};
    ASSERT_EQ(program.run({x, y}, out), ALONE_OK) << rows << ": " << program.context.message;
    EXPECT_TRUE(allclose(out[0], sum)) << rows;
    EXPECT_TRUE(allclose(out[1], more)) << rows;
  }
  ExportOptions strict = alone({{0, 0, 1, 40, "rows"}, {1, 0, 1, 40, "rows"}});
  strict.strict = true;
  EXPECT_NO_THROW(export_(f, {rand({4, 6}), rand({4})}, strict));
  strict.dynamic[1].name = "others";  // which have to be equal
  EXPECT_THROW(export_(f, {rand({4, 6}), rand({4})}, strict), Error);
  std::vector<Tensor> out = {empty({6}), empty({82, 3})};
  EXPECT_EQ(program.run({rand({41, 6}), rand({41})}, out), ALONE_INPUT);
  EXPECT_STREQ(program.context.message, "input 'in0': size 0 is 41, expected 1 to 40");
  EXPECT_EQ(program.run({rand({3, 6}), rand({4})}, out), ALONE_INPUT);
  EXPECT_STREQ(program.context.message, "input 'in1': size 0 is 4, expected 3 as in input 'in0'");
  EXPECT_EQ(program.run({rand({3, 7}), rand({3})}, out), ALONE_INPUT);
  out = {empty({5}), empty({6, 3})};
  EXPECT_EQ(program.run({rand({3, 6}), rand({3})}, out), ALONE_MEMORY);
}

// Sizes that are equal in the example are not equal for ever; where the function wants them to be, others are refused.
TEST(Export, SizesThatAreEqualInTheExample) {
  Folder folder;
  Tensor w = rand({4, 4});
  struct Case {
    std::function<Tensor(const std::vector<Tensor>&)> f;
    std::vector<Tensor> example;
    std::vector<DynamicSize> dynamic;
    std::vector<std::vector<Tensor>> taken, refused;
  };
  const std::vector<Case> cases = {
      {[](auto& in) { return in[0] * 2; },
       {rand({4, 4})},
       {{0, 0, 1, 64}, {0, 1, 1, 64}},
       {{rand({2, 3})}, {rand({3, 2})}, {rand({7, 7})}, {rand({1, 64})}, {rand({64, 1})}},
       {}},
      {[](auto& in) { return in[0].sum() * in[1]; },
       {rand({4}), rand({4})},
       {{0, 0, 1, 64}, {1, 0, 1, 64}},
       {{rand({2}), rand({3})}, {rand({9}), rand({1})}, {rand({8}), rand({8})}},
       {}},
      {[](auto& in) { return in[0].matmul(in[0].t()); },
       {rand({8, 8})},
       {{0, 0, 1, 64}, {0, 1, 1, 64}},
       {{rand({3, 5})}, {rand({5, 3})}, {rand({1, 9})}, {rand({16, 16})}},
       {}},
      {[](auto& in) { return in[0] * in[1]; },
       {rand({5}), rand({5})},
       {{0, 0, 2, 64}, {1, 0, 2, 64}},
       {{rand({9}), rand({9})}},
       {{rand({9}), rand({7})}}},
      {[&](auto& in) { return in[0].matmul(w.t()) + in[0].sum(1, true) * w.t()[1]; },
       {rand({4, 4})},
       {{0, 0, 1, 64}},
       {{rand({3, 4})}, {rand({4, 4})}, {rand({17, 4})}},
       {}},
  };
  for (size_t k = 0; k < cases.size(); ++k) {
    const Case& c = cases[k];
    fs::path here = folder.path / std::to_string(k);
    fs::create_directory(here);
    Loaded program(detail::export_function([&](const std::vector<Tensor>& in) { return std::vector<Tensor>{c.f(in)}; },
                                           c.example, alone(c.dynamic)),
                   here);
    for (const std::vector<Tensor>& in : c.taken) {
      Tensor want = c.f(in);
      std::vector<Tensor> out = {full(want.sizes(), NAN)};
      ASSERT_EQ(program.run(in, out), ALONE_OK) << k << ": " << program.context.message;
      EXPECT_TRUE(allclose(out[0], want, 1e-4, 1e-5)) << k << ": " << want.sizes();
    }
    for (const std::vector<Tensor>& in : c.refused) {
      std::vector<Tensor> out = {empty({64})};
      EXPECT_EQ(program.run(in, out), ALONE_INPUT) << k;
    }
  }
}

// How a number, or a branch, follows from sizes is not recorded: there is code for the sizes that the export tried, and for no others.
TEST(Export, NumbersAndBranchesThatChangeWithSizes) {
  Folder folder;
  const std::vector<std::function<Tensor(const Tensor&)>> functions = {
      [](const Tensor& x) { return x * std::sqrt(static_cast<double>(x.size(0))); },
      [](const Tensor& x) { return x.size(0) > 6 ? x * 2 : x.exp(); },
      [](const Tensor& x) {
        Tensor out = x;
        for (int64_t i = 0; i < x.size(0); ++i) out = out + 1;
        return out;
      },
  };
  for (size_t k = 0; k < functions.size(); ++k) {
    const auto& f = functions[k];
    fs::path here = folder.path / std::to_string(k);
    fs::create_directory(here);
    Loaded program(export_(f, {rand({3, 4})}, alone({{0, 0, 1, 64}})), here);
    int taken = 0;
    for (int64_t n : {1, 2, 3, 5, 9, 12, 31, 50, 64}) {
      Tensor x = rand({n, 4});
      std::vector<Tensor> out = {full({n, 4}, NAN)};
      if (program.run({x}, out) != ALONE_OK) continue;
      ++taken;
      EXPECT_TRUE(allclose(out[0], f(x))) << k << ": " << n;
    }
    EXPECT_GE(taken, 4);
    EXPECT_LT(taken, 9);
    ExportOptions strict = alone({{0, 0, 1, 64}});
    strict.strict = true;
    try {
      export_(f, {rand({3, 4})}, strict);
      ADD_FAILURE() << k;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find("there is no code for 'in0' ["), std::string::npos) << e.what();
    }
  }
}

TEST(Export, InputsThatItChangesAreChanged) {
  Folder folder;
  auto f = [](const Tensor& x) {
    x.mul_(2);
    return x.sum();
  };
  Loaded program(export_(f, {rand({3})}, alone()), folder.path);
  Tensor x = ones({3});
  std::vector<Tensor> out = {empty({})};
  ASSERT_EQ(program.run({x}, out), ALONE_OK) << program.context.message;
  EXPECT_EQ(out[0].item<float>(), 6);
  EXPECT_TRUE(equal(x, full({3}, 2.0)));
}

TEST(Export, WhatRunsChangeIsTheContexts) {
  Folder folder;
  Tensor count = zeros({2}), start = zeros({2});
  auto f = [&](const Tensor& x) {
    count.add_(x);
    return count * 2;
  };
  Loaded program(export_(f, {ones({2})}, alone()), folder.path);
  EXPECT_TRUE(equal(count, start)) << "the export changed it";
  for (int i = 1; i <= 3; ++i) {
    std::vector<Tensor> out = {empty({2})};
    ASSERT_EQ(program.run({ones({2})}, out), ALONE_OK) << program.context.message;
    EXPECT_TRUE(equal(out[0], full({2}, 2.0 * i)));
  }
}

TEST(Export, WeightsBesideAndThreads) {
  Folder folder;
  Tensor w = rand({300, 300});
  ExportOptions beside = alone();
  beside.weights_beside = true;
  auto f = [&](const Tensor& x) { return matmul(x, w).relu(); };
  ExportedProgram exported = export_(f, {rand({64, 300})}, beside);
  EXPECT_THROW(Loaded(exported, folder.path), std::runtime_error);
  std::string file = (folder.path / "p.weights").string();
  Loaded program(exported, folder.path, file.c_str());
  program.context.threads = 3;
  program.context.parallel = [](void*, int32_t tasks, void (*task)(void*, int32_t), void* context) {
    std::vector<std::thread> threads;
    for (int32_t i = 0; i < tasks; ++i) threads.emplace_back(task, context, i);
    for (std::thread& t : threads) t.join();
  };
  Tensor x = rand({64, 300});
  std::vector<Tensor> out = {empty({64, 300})};
  ASSERT_EQ(program.run({x}, out), ALONE_OK) << program.context.message;
  EXPECT_TRUE(allclose(out[0], f(x), 1e-5, 1e-5));

  // Any other byte is another file.
  auto* open = program.at<decltype(alone_open)>("alone_open");
  std::string copy = file + ".copy";
  alone_context other;
  for (int64_t at : {8, 64, 5000, static_cast<int>(fs::file_size(file)) - 1}) {
    fs::copy_file(file, copy, fs::copy_options::overwrite_existing);
    EXPECT_EQ(open(&other, copy.c_str()), ALONE_OK) << other.message;
    program.at<decltype(alone_close)>("alone_close")(&other);
    std::fstream bytes(copy, std::ios::in | std::ios::out | std::ios::binary);
    int byte = bytes.seekg(at).get();
    bytes.seekp(at).put(static_cast<char>(byte ^ 128)).flush();
    EXPECT_EQ(open(&other, copy.c_str()), ALONE_FILE) << at;
    EXPECT_EQ(other.weights, nullptr) << at;  // so that a run says that there are none
  }
  EXPECT_THROW(Loaded(exported, folder.path / ".", (folder.path / "none").c_str()), std::runtime_error);
}

// Contexts share what is made of weights: the first run of a level makes it, the last context that closes gives it back.
TEST(Export, WhatIsMadeOfWeightsIsMadeOnce) {
  Folder folder;
  manual_seed(4);
  nn::Conv2d first(nn::Conv2dOptions(3, 8, 3)), second(nn::Conv2dOptions(8, 40, 3));
  nn::Linear last(40, 33);
  auto f = [&](const Tensor& x) { return last(second(first(x).relu()).relu().mean({2, 3})); };
  NoGradGuard no_grad;
  Tensor x = rand({2, 3, 20, 20}), want = f(x);
  ExportedProgram exported = export_(f, {x}, alone());
  EXPECT_NE(exported.header().find("ALONE_PREPARED_BYTES"), std::string::npos);
  Loaded program(exported, folder.path);
  auto* open = program.at<decltype(alone_open)>("alone_open");
  auto* close = program.at<decltype(alone_close)>("alone_close");
  auto* run = program.at<decltype(alone_run)>("alone_run");
  std::vector<Tensor> out = {full({2, 33}, NAN)};
  ASSERT_EQ(program.run({x}, out), ALONE_OK) << program.context.message;
  EXPECT_TRUE(allclose(out[0], want, 1e-4, 1e-5));

  alone_tensor in = {x.data_ptr(), static_cast<size_t>(x.numel()) * sizeof(float), {2, 3, 20, 20}};
  auto check = [&](int level) {
    alone_context c;
    ASSERT_EQ(open(&c, nullptr), ALONE_OK) << c.message;
    c.level = std::min(c.level, level);
    std::vector<char> memory(program.memory.size());
    c.memory = memory.data();
    c.memory_bytes = memory.size();
    std::vector<float> y(2 * 33);
    alone_tensor result = {y.data(), y.size() * sizeof(float), {}};
    for (int k = 0; k < 3; ++k) {
      ASSERT_EQ(run(&c, &in, &result), ALONE_OK) << c.message;
      for (int64_t i = 0; i < 66; ++i) ASSERT_NEAR(y[i], want.data_ptr<float>()[i], 1e-3) << level;
    }
    close(&c);
    close(&c);
  };
  for (int round = 0; round < 2; ++round) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) threads.emplace_back(check, i % 3);
    for (std::thread& t : threads) t.join();
    if (round == 0) close(&program.context);  // so that nobody holds it
  }
}

// A weight for the recordings before the one that changes it.
TEST(Export, WhatOnlySomeSizesChangeIsState) {
  Folder folder;
  Tensor w = rand({40, 48}), first = w.clone();
  auto f = [&](const Tensor& x) {
    if (x.size(0) > 6) w.mul_(2);
    return x.matmul(w);
  };
  Loaded program(export_(f, {rand({3, 40})}, alone({{0, 0, 1, 64}})), folder.path);
  double factor = 1;
  for (int64_t rows : {3, 8, 3, 16, 2}) {
    if (rows > 6) factor *= 2;
    Tensor x = rand({rows, 40});
    std::vector<Tensor> out = {full({rows, 48}, NAN)};
    ASSERT_EQ(program.run({x}, out), ALONE_OK) << program.context.message;
    EXPECT_TRUE(allclose(out[0], x.matmul(first * factor), 1e-4, 1e-4)) << rows;
  }
}

// Programs for another kind of processors, under an emulator of it.
TEST(Export, ProgramsForAArch64) {
  auto there = [](const std::string& command) { return std::system((command + " >/dev/null 2>&1").c_str()) == 0; };
  if (!there("which qemu-aarch64") || !there("which aarch64-linux-gnu-gcc"))
    GTEST_SKIP() << "qemu-user and gcc-aarch64-linux-gnu are not here";
  Folder folder;
  ExportOptions options = alone();
  options.targets = {"aarch64"};
  options.dynamic = {{0, 0, 1, 100, "n"}, {1, 0, 1, 100, "n"}};
  manual_seed(7);
  nn::Linear layer(48, 33);
  nn::Conv2d conv(nn::Conv2dOptions(3, 5, 3).padding(1).stride(2));
  nn::LayerNorm norm(nn::LayerNormOptions({33}));
  auto f = [&](const Tensor& x, const Tensor& image) {
    NoGradGuard no_grad;
    Tensor y = norm(layer(x)).softmax(1), z = conv(image);
    return std::vector<Tensor>{y,
                               z.relu().sum({2, 3}),
                               y.gt(0.03),
                               y.argmax(1),
                               (x * 100).to(kInt8),
                               x.to(kHalf) * 3,
                               x.to(kBFloat16).exp(),
                               x.floor() + x.round() + x.erf() + x.lgamma() + x.sin().atan2(x),
                               y.to(kFloat64).cumsum(0),
                               (x * 1000).to(kInt64).remainder(7)};
  };
  std::vector<Tensor> in = {rand({7, 48}), rand({7, 3, 17, 19})};
  export_(f, in, options).write_executable((folder.path / "p").string());
  for (int64_t n : {1, 4, 31}) {
    in = {rand({n, 48}), rand({n, 3, 17, 19})};
    auto file = [&](const char* name) { return (folder.path / name).string(); };
    save_tensors({{"in0", in[0]}, {"in1", in[1]}}, file("in.safetensors"));
    ASSERT_EQ(std::system(("qemu-aarch64 -L /usr/aarch64-linux-gnu " + file("p") + " " + file("in.safetensors") + " " +
                           file("out.safetensors"))
                              .c_str()),
              0);
    auto out = load_tensors(file("out.safetensors"));
    std::vector<Tensor> expected = f(in[0], in[1]);
    for (size_t i = 0; i < expected.size(); ++i) {
      const Tensor &e = expected[i], &got = out.at("out" + std::to_string(i));
      double tolerance = e.scalar_type() == kBFloat16 ? 1e-2 : e.scalar_type() == kHalf ? 1e-3 : 1e-5;
      EXPECT_TRUE(allclose(got.to(kFloat64), e.to(kFloat64), tolerance, tolerance)) << "result " << i << ", n = " << n;
    }
  }
  options.targets = {"aarch64", "x86-64"};
  EXPECT_THROW(export_(f, in, options), Error);
}

TEST(Export, AnExecutableReadsAndWritesArrays) {
  Folder folder;
  auto f = [](const Tensor& x, const Tensor& n, const Tensor& mask) {
    return std::make_tuple(where(mask, x, x * 2), n.sum(1), x.to(kFloat64).sum());
  };
  std::vector<Tensor> in = {rand({3, 4}), arange(6).view({3, 2}), rand({3, 4}).gt(0.5)};
  export_(f, in, alone()).write_executable((folder.path / "p").string());
  auto file = [&](const char* name) { return (folder.path / name).string(); };
  auto run = [&](const std::string& arguments) {
    return std::system(("cd " + folder.path.string() + " && ./p " + arguments + " 2>message").c_str());
  };
  auto message = [&] {
    std::ifstream text(folder.path / "message");
    return std::string(std::istreambuf_iterator<char>(text), {});
  };
  // Also what NumPy writes for a transposed array.
  io::save_npy(in[0], file("x.npy"));
  io::save_npy(in[1].t().contiguous().t(), file("n.npy"));
  io::save_npy(in[2], file("mask.npy"));
  ASSERT_NE(io::describe_npy(file("n.npy")).find("Fortran"), std::string::npos);
  ASSERT_EQ(run("x.npy n.npy mask.npy a.npy b.npy c.npy"), 0) << message();
  auto [a, b, c] = f(in[0], in[1], in[2]);
  EXPECT_TRUE(equal(io::load_npy(file("a.npy")), a));
  EXPECT_TRUE(equal(io::load_npy(file("b.npy")), b));
  EXPECT_TRUE(allclose(io::load_npy(file("c.npy")), c));
  EXPECT_EQ(io::load_npy(file("c.npy")).dim(), 0);
  // One form in, the other one out.
  ASSERT_EQ(run("x.npy n.npy mask.npy out.safetensors"), 0) << message();
  EXPECT_TRUE(equal(load_tensors(file("out.safetensors")).at("out1"), b));
  save_tensors({{"in0", in[0]}, {"in1", in[1]}, {"in2", in[2]}}, file("in.safetensors"));
  ASSERT_EQ(run("in.safetensors a.npy b.npy c.npy"), 0) << message();
  EXPECT_TRUE(equal(io::load_npy(file("b.npy")), b));

  EXPECT_NE(run("x.npy n.npy a.npy b.npy c.npy"), 0);
  EXPECT_NE(run("n.npy x.npy mask.npy out.safetensors"), 0);
  EXPECT_NE(message().find("input 'in0' is <i8 with 2 dimensions, expected F32 with 2"), std::string::npos)
      << message();
  std::ifstream whole(file("x.npy"), std::ios::binary);
  std::string bytes(std::istreambuf_iterator<char>(whole), {});
  for (size_t n = 0; n < bytes.size(); n += 3) {
    std::ofstream(file("x.npy"), std::ios::binary) << bytes.substr(0, n);
    EXPECT_NE(run("x.npy n.npy mask.npy out.safetensors"), 0) << n;
  }
}

TEST(Export, AClosedProgramDoesNotRun) {
  Folder folder;
  Tensor w = rand({4});
  Loaded program(export_([&](const Tensor& x) { return x * w; }, {rand({4})}, alone()), folder.path);
  std::vector<Tensor> out = {empty({4})};
  EXPECT_EQ(program.run({rand({4})}, out), ALONE_OK);
  program.at<decltype(alone_close)>("alone_close")(&program.context);
  EXPECT_EQ(program.run({rand({4})}, out), ALONE_FILE);
}

// A loop with a branch in each step: its last state, and what the steps give.
auto branching_scan(const Tensor& x, const Tensor& w) {
  return scan(
      [&](Tensor h, Tensor x) {
        h = cond(x.sum() > 0, [&] { return (x + h.matmul(w)).tanh(); }, [&] { return h - x; });
        return std::pair(h, h * 2);
      },
      zeros({4}), x);
}

// A loop is a loop in the program: its steps may be as many as the size says, also none.
TEST(Export, LoopsOfAnyLength) {
  Folder folder;
  Tensor w = rand({4, 4});
  auto f = [&](const Tensor& x) {
    auto [h, ys] = branching_scan(x, w);
    auto [back, zs] =
        scan([&](Tensor h, Tensor y) { return std::pair(h * 0.5 + y, h + x.sum()); }, h, ys, /*reverse=*/true);
    return zs + back;
  };
  Loaded program(export_(f, {rand({6, 4})}, alone({{0, 0, 1, 1000}})), folder.path);
  for (int64_t steps : {1, 2, 3, 17, 1000}) {
    Tensor x = randn({steps, 4});
    std::vector<Tensor> out = {full({steps, 4}, NAN)};
    ASSERT_EQ(program.run({x}, out), ALONE_OK) << program.context.message;
    EXPECT_TRUE(allclose(out[0], f(x), 1e-4, 1e-4)) << steps;
  }
}

// A loop in each step of a loop, over a size that the outer one does not go over.
TEST(Export, NestedLoops) {
  Folder folder;
  NoGradGuard no_grad;  // a state may carry gradients, and these are known step by step only in a while_loop
  auto f = [](const Tensor& x) {
    auto [total, rows] = scan(
        [](Tensor sum, Tensor row) {
          auto [last, all] = scan([](Tensor h, Tensor e) { return std::pair(h * 0.5 + e, h); }, sum, row);
          Tensor small = while_loop([](Tensor t) { return t.abs() > 1; }, [](Tensor t) { return t / 2; }, last);
          return std::pair(small, all + small);
        },
        zeros({}), x);
    return std::make_pair(total, rows);
  };
  Loaded program(export_(f, {rand({3, 5})}, alone({{0, 0, 1, 50}, {0, 1, 1, 50}})), folder.path);
  for (auto [rows, columns] : {std::pair<int64_t, int64_t>{1, 1}, {3, 5}, {7, 2}, {2, 50}}) {
    Tensor x = randn({rows, columns}) * 4;
    auto [total, all] = f(x);
    std::vector<Tensor> out = {full({}, NAN), full({rows, columns}, NAN)};
    ASSERT_EQ(program.run({x}, out), ALONE_OK) << program.context.message;
    EXPECT_TRUE(allclose(out[0], total, 1e-5, 1e-5));
    EXPECT_TRUE(allclose(out[1], all, 1e-5, 1e-5));
  }
}

// As many steps as the values say: an odd and an even number of them, and none.
TEST(Export, WhileLoops) {
  Folder folder;
  Tensor w = rand({3});
  auto f = [&](const Tensor& x) {
    auto [y, count] = while_loop([](Tensor t, Tensor) { return t.max() > 1; },
                                 [&](Tensor t, Tensor n) { return std::pair(t / 2 - w, n + 1); }, x, zeros({}, kInt64));
    return std::make_pair(y, count);
  };
  Loaded program(export_(f, {rand({3})}, alone()), folder.path);
  for (float largest : {0.5f, 1.5f, 3.9f, 1000.f}) {
    Tensor x = full({3}, largest);
    auto [y, count] = f(x);
    std::vector<Tensor> out = {full({3}, NAN), full({}, -1, kInt64)};
    ASSERT_EQ(program.run({x}, out), ALONE_OK) << program.context.message;
    EXPECT_TRUE(allclose(out[0], y)) << largest;
    EXPECT_EQ(out[1].item<int64_t>(), count.item<int64_t>());
  }
}

TEST(Export, RecurrentLayersOfAnyLength) {
  Folder folder;
  nn::LSTM lstm(nn::LSTMOptions(3, 4).bidirectional(true));
  auto f = [&](const Tensor& x) { return std::get<0>(lstm(x)); };
  NoGradGuard no_grad;
  ExportedProgram exported = export_(f, {rand({5, 2, 3})}, alone({{0, 0, 1, 500}}));
  Loaded program(exported, folder.path);
  EXPECT_LT(exported.code_bytes(), 100'000u);  // and not as many steps
  for (int64_t steps : {1, 2, 5, 33, 500}) {
    Tensor x = randn({steps, 2, 3}), want = f(x);
    std::vector<Tensor> out = {full({steps, 2, 8}, NAN)};
    ASSERT_EQ(program.run({x}, out), ALONE_OK) << program.context.message;
    EXPECT_TRUE(allclose(out[0], want, 1e-4, 1e-5)) << steps;
  }
}

// The state that a layer makes itself has the batch's size, before the input is read.
TEST(Export, RecurrentLayersOfAnyBatch) {
  Folder folder;
  nn::LSTM lstm(nn::LSTMOptions(3, 4));
  nn::GRU gru(nn::GRUOptions(4, 3).batch_first(false));
  auto f = [&](const Tensor& x) { return std::get<0>(gru(std::get<0>(lstm(x)))); };
  NoGradGuard no_grad;
  Loaded program(export_(f, {rand({5, 2, 3})}, alone({{0, 0, 1, 50}, {0, 1, 1, 70}})), folder.path);
  for (auto [steps, batch] : {std::pair(1, 1), {5, 1}, {1, 9}, {7, 13}, {50, 70}}) {
    Tensor x = randn({steps, batch, 3}), want = f(x);
    std::vector<Tensor> out = {full({steps, batch, 3}, NAN)};
    ASSERT_EQ(program.run({x}, out), ALONE_OK) << program.context.message;
    EXPECT_TRUE(allclose(out[0], want, 1e-4, 1e-5)) << steps << " " << batch;
  }
}

TEST(Export, WhatOnlyALibraryComputesIsNamed) {
  std::string eig =
      error_of([] { export_([](const Tensor& x) { return linalg_eigvals(x + 1).abs(); }, {rand({3, 3})}, alone()); });
  EXPECT_TRUE(eig.starts_with("export: aten::linalg_eig")) << eig;
  EXPECT_NE(eig.find(" has no code that runs alone: prim::eig"), eig.npos) << eig;
  std::string inverse = error_of(
      [] { export_([](const Tensor& x) { return linalg_inv(complex(x, x + 1)).abs(); }, {rand({3, 3})}, alone()); });
  EXPECT_NE(inverse.find(" has no code that runs alone: prim::"), inverse.npos) << inverse;
}

TEST(Export, Sorts) {
  Folder folder;
  auto f = [](const Tensor& x, const Tensor& i) {
    auto [sorted, places] = x.sort(0);
    auto [largest, where] = x.topk(3, 1);
    auto [middle, at] = x.median(1);
    return std::make_tuple(sorted, places, largest, where, std::get<0>(x.kthvalue(2, 1)), middle, i.argsort(-1, true),
                           std::get<0>(x.to(kBFloat16).sort(1, true)).to(kFloat32), std::get<0>((i > 3).sort(0)));
  };
  Loaded program(export_(f, {rand({7, 5}), arange(6)}, alone({{0, 0, 1, 600}, {0, 1, 3, 40}, {1, 0, 1, 600}})),
                 folder.path);
  for (auto [rows, columns, n] : {std::tuple(7, 5, 6), {1, 3, 1}, {2, 4, 600}, {600, 40, 17}}) {
    Tensor x = (randn({rows, columns}) * 4).round() / 2, i = randint(-5, 9, {n}, kInt64);  // with equal elements
    x[0][0] = NAN;
    x[0][1] = -INFINITY;
    x[0][2] = -0.0;
    auto want = std::apply([](auto... t) { return std::vector<Tensor>{t...}; }, f(x, i));
    std::vector<Tensor> out;
    for (const Tensor& t : want) out.push_back(t.clone().zero_());
    ASSERT_EQ(program.run({x, i}, out), ALONE_OK) << program.context.message;
    for (size_t k = 0; k < want.size(); ++k)
      EXPECT_TRUE(allclose(out[k].to(kFloat64), want[k].to(kFloat64), 0, 0, true)) << k << " of " << rows << " rows";
  }
}

// A check in a step ends the run.
TEST(Export, ChecksInLoops) {
  Folder folder;
  Tensor table = rand({4, 2});
  auto f = [&](const Tensor& i) {
    return scan([&](Tensor h, Tensor k) { return std::pair(h + table.index_select(0, k.unsqueeze(0))[0], h); },
                zeros({2}), i)
        .first;
  };
  Loaded program(export_(f, {zeros({3}, kInt64)}, alone({{0, 0, 1, 9}})), folder.path);
  std::vector<Tensor> out = {empty({2})};
  ASSERT_EQ(program.run({tensor({1, 3, 2, 0}, kInt64)}, out), ALONE_OK) << program.context.message;
  EXPECT_TRUE(allclose(out[0], table.sum(0)));
  EXPECT_EQ(program.run({tensor({1, 4, 2}, kInt64)}, out), ALONE_CHECK);
}

TEST(Export, BranchesAndLoops) {
  Folder folder;
  Tensor w = rand({4, 4});
  auto f = [&](const Tensor& x) {
    auto [h, ys] = branching_scan(x, w);
    return ys + h;
  };
  Loaded program(export_(f, {rand({6, 4})}, alone()), folder.path);
  for (int64_t i = 0; i < 4; ++i) {
    Tensor x = randn({6, 4});
    std::vector<Tensor> out = {full({6, 4}, NAN)};
    ASSERT_EQ(program.run({x}, out), ALONE_OK) << program.context.message;
    EXPECT_TRUE(allclose(out[0], f(x), 1e-5, 1e-6));
  }
}

TEST(Export, ErrorsSayWhatCannotRunAlone) {
  auto message = [](auto f, const std::vector<Tensor>& inputs) -> std::string {
    try {
      export_(f, inputs, alone());
    } catch (const Error& e) {
      return e.what();
    }
    return "no error";
  };
  EXPECT_NE(message([](const Tensor& x) { return x * x.sum().item<float>(); }, {rand({3})}).find("item()"),
            std::string::npos);
  EXPECT_NE(
      message([](const Tensor& x, const Tensor& n) { return x + n.data_ptr<int64_t>()[0]; }, {rand({3}), tensor(2)})
          .find("data_ptr() reads the value of input 1"),
      std::string::npos);
  EXPECT_NE(message([](const Tensor& x) { return x * 2; }, {empty({0, 3})}).find("has no elements"), std::string::npos);
  ExportOptions taken = alone();
  taken.name = "class";
  EXPECT_THROW(export_([](const Tensor& x) { return x * 2; }, {rand({3})}, taken), Error);
  Tensor state = zeros({6}), same = from_blob(state.data_ptr(), {6});
  EXPECT_NE(message([&](const Tensor& x) { return state.add_(x), same * 2; }, {rand({6})}), "no error");
}

}  // namespace
}  // namespace brasa
