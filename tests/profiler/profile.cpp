#include <brasa/brasa.h>
#include <brasa/compile.h>
#include <brasa/profiler.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <thread>

namespace brasa {
namespace {

using profiler::Average;
using profiler::Event;
using profiler::Kind;
using profiler::profile;
using profiler::record_function;

const Average* find(const profiler::Averages& averages, Kind kind, const std::string& name) {
  for (const Average& a : averages.rows())
    if (a.kind == kind && a.name == name) return &a;
  return nullptr;
}

int64_t calls(const profile& p, Kind kind, const std::string& name) {
  profiler::Averages averages = p.key_averages();
  const Average* a = find(averages, kind, name);
  return a ? a->calls : 0;
}

int64_t number_of(const profile& p, Kind kind) {
  return std::count_if(p.events().begin(), p.events().end(), [&](const Event& e) { return e.kind == kind; });
}

// What a recurrent layer's loop gave is kept: the backward pass runs no loop of the forward pass again.
TEST(Profile, ALoopRunsOnceEachWay) {
  Tensor x = randn({6, 2, 3});
  std::vector<Tensor> weights;
  for (const std::vector<int64_t>& sizes : std::vector<std::vector<int64_t>>{{16, 3}, {16, 4}, {16}, {16}})
    weights.push_back(randn(sizes, requires_grad()));
  for (int k = 0; k < 2; ++k) {
    profile p;
    std::get<0>(lstm(x, {zeros({1, 2, 4}), zeros({1, 2, 4})}, weights, true, 1, 0.0, true, false, false))
        .sum()
        .backward();
    p.stop();
    int64_t loops = 0;
    const profiler::Averages averages = p.key_averages();
    for (const Average& a : averages.rows())
      if (a.name.find("scan_loop") != std::string::npos) loops += a.calls;
    EXPECT_EQ(loops, 2);
  }
}

// What a library made for an eager call is kept for its derivative, vectors too that no result has.
TEST(Profile, AFactorisationASortAndAttentionRunOnceForACallAndItsGradient) {
  struct Case {
    const char* primitive;
    Tensor (*f)(const Tensor& x);
  };
  const Case cases[] = {
      {"svd", [](const Tensor& x) { return linalg_svdvals(x); }},
      {"svd", [](const Tensor& x) { return std::get<0>(svd(x, false)); }},
      {"eigh", [](const Tensor& x) { return linalg_eigvalsh(x); }},
      {"qr", [](const Tensor& x) { return std::get<1>(linalg_qr(x)); }},
      {"upper_cholesky", [](const Tensor& x) { return linalg_cholesky(eye(5) + 0.1 * x.mm(x.t()), true); }},
      {"sort", [](const Tensor& x) { return nanquantile(x, 0.3); }},
      {"attention",
       [](const Tensor& x) {
         Tensor heads = x.view({5, 5, 1}).repeat({1, 1, 600}).transpose(1, 2);
         return scaled_dot_product_attention(heads, heads, heads);
       }},
  };
  for (const Case& c : cases) {
    Tensor x = randn({5, 5}, requires_grad());
    c.f(x).sum().backward();
    profile p;
    c.f(x).sum().backward();
    p.stop();
    int64_t runs = 0;
    const profiler::Averages averages = p.key_averages();
    for (const Average& a : averages.rows())
      if (a.kind == Kind::Kernel && a.name.starts_with("library") && a.name.ends_with(c.primitive)) runs += a.calls;
    EXPECT_EQ(runs, 1) << c.primitive;
  }
}

// A kernel's name counts what it does: "2xreduce", "reduce".
int64_t reductions(const std::string& name) {
  size_t at = name.find("reduce");
  if (at == std::string::npos) return 0;
  return at > 1 && name[at - 1] == 'x' ? name[at - 2] - '0' : 1;
}

// A norm's mean and variance are two sums, and its derivative has two. Running statistics are made of the same ones.
TEST(Profile, StatisticsOfANormAreMadeOnceForACallAndItsGradient) {
  Tensor running = zeros({64}), squares = ones({64});
  const std::function<Tensor(const Tensor&)> cases[] = {
      [](const Tensor& x) { return layer_norm(x, {64}); },
      [](const Tensor& x) { return group_norm(x, 1); },
      [](const Tensor& x) { return batch_norm(x, {}, {}, {}, {}, true, 0.1, 1e-5, false); },
      [&](const Tensor& x) { return batch_norm(x, {}, {}, running, squares, true, 0.1, 1e-5, false); },
  };
  for (const auto& norm : cases) {
    Tensor x = randn({32, 64}, requires_grad());
    norm(x).backward(x.detach());
    profile p;
    norm(x).backward(x.detach());
    p.stop();
    int64_t sums = 0;
    for (const Event& e : p.events())
      if (e.kind == Kind::Kernel) sums += reductions(e.name);
    EXPECT_EQ(sums, 4);
  }
}

// Parts of complex numbers are kept for no derivative.
TEST(Profile, ATransformTakesAsManyKernelsWhereItHasAGradient) {
  int64_t kernels[2];
  for (bool gradient : {false, true}) {
    Tensor x = randn({6, 20}).requires_grad_(gradient);
    (void)fft_rfft(x);
    profile p;
    (void)fft_rfft(x);
    p.stop();
    kernels[gradient] = number_of(p, Kind::Kernel);
  }
  EXPECT_EQ(kernels[0], kernels[1]);
}

TEST(Profile, NamesOperatorsAndTheirKernels) {
  Tensor x = rand({64, 64}, requires_grad());
  profile p;
  (x * x).add_(x).exp().sum().backward();
  p.stop();
  x.sin();  // not recorded
  for (const char* name :
       {"aten::mul.Tensor", "aten::add.Tensor", "aten::exp", "aten::sum", "MulBackward0", "ExpBackward0"})
    EXPECT_GE(calls(p, Kind::Operator, name), 1) << name;
  EXPECT_EQ(calls(p, Kind::Operator, "aten::sin"), 0);
  EXPECT_GE(number_of(p, Kind::Kernel), 6);
  for (const Event& e : p.events())
    if (e.name.find(": exp ") != std::string::npos) {
      EXPECT_EQ(e.bytes, 2 * 64 * 64 * 4) << e.name;
    }
  double end = 0;
  for (const Event& e : p.events()) {
    EXPECT_GE(e.start, 0);
    EXPECT_GE(e.duration, 0);
    end = std::max(end, e.start + e.duration);
  }
  EXPECT_GT(end, 0);
}

TEST(Profile, RangesHoldWhatRunsInThem) {
  Tensor x = rand({512, 512});
  x.matmul(x);  // what compiles is not looked at
  profile p;
  {
    record_function step("step");
    for (int i = 0; i < 3; ++i) x = x.matmul(x);
  }
  p.stop();
  profiler::Averages averages = p.key_averages();
  const Average *step = find(averages, Kind::Range, "step"), *product = find(averages, Kind::Operator, "aten::matmul");
  ASSERT_TRUE(step && product);
  EXPECT_EQ(step->calls, 1);
  EXPECT_EQ(product->calls, 3);
  EXPECT_LE(product->total, step->total);
  EXPECT_NEAR(step->self + product->total, step->total, 0.01 * step->total);
  double kernels = 0;
  for (const Average& a : averages.rows())
    if (a.kind == Kind::Kernel) kernels += a.total;
  EXPECT_NEAR(product->self + kernels, product->total, 0.01 * product->total);
}

TEST(Profile, MemoryIsWhatStays) {
  profile p;
  Tensor kept;
  {
    record_function range("made");
    kept = zeros({1024, 1024});
  }
  p.stop();
  profiler::Averages averages = p.key_averages();
  EXPECT_GE(find(averages, Kind::Range, "made")->memory, 4 << 20);
}

TEST(Profile, CompiledFunctionsShowKernelsAndNoOperators) {
  auto f = compile([](const Tensor& x) { return (x.sin() * 2 + 1).relu(); });
  Tensor x = rand({1000});
  f(x);
  profile p;
  f(x);
  p.stop();
  EXPECT_EQ(number_of(p, Kind::Operator), 0);
  EXPECT_EQ(number_of(p, Kind::Kernel), 1);
  EXPECT_EQ(number_of(p, Kind::Compilation), 0);
}

TEST(Profile, CompilationsAreSeen) {
  std::random_device device;
  std::vector<unsigned> steps;  // of so many forms that no cache holds this one
  for (int i = 0; i < 12; ++i) steps.push_back(device() % 4);
  auto f = compile([&](Tensor x) {
    for (unsigned s : steps) x = s == 0 ? x.sin() : s == 1 ? x.relu() : s == 2 ? x * x : x.neg();
    return x;
  });
  Tensor x = rand({7});
  int64_t before = stats().kernels_generated;
  profile p;
  f(x);
  p.stop();
  EXPECT_EQ(number_of(p, Kind::Compilation) > 0, stats().kernels_generated > before);
  EXPECT_GT(stats().kernels_generated, before);
}

TEST(Profile, ThreadsAreToldApart) {
  profile p;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([] {
      record_function range("work");
      for (int k = 0; k < 20; ++k) rand({16}).sum();
    });
  for (std::thread& t : threads) t.join();
  p.stop();
  std::set<uint32_t> seen;
  for (const Event& e : p.events())
    if (e.kind == Kind::Range) seen.insert(e.thread);
  EXPECT_EQ(seen.size(), 4u);
  EXPECT_EQ(calls(p, Kind::Operator, "aten::sum"), 80);
}

TEST(Profile, SchedulesRecordActiveSteps) {
  std::vector<int64_t> turns;
  profiler::ProfileOptions options;
  options.schedule = profiler::Schedule{.wait = 1, .warmup = 1, .active = 2, .repeat = 2, .skip_first = 1};
  options.on_trace_ready = [&](profile& p) { turns.push_back(calls(p, Kind::Operator, "aten::sin")); };
  Tensor x = rand({8});
  profile p(options);
  for (int step = 0; step < 12; ++step) {
    x.sin();
    p.step();
  }
  p.stop();
  EXPECT_EQ(turns, (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(calls(p, Kind::Operator, "aten::sin"), 2);
}

TEST(Profile, TracesAreJsonOfCompleteEvents) {
  auto path = std::filesystem::temp_directory_path() / "brasa_profile_trace.json";
  profile p;
  {
    record_function range("a \"quoted\"\nname\xff");
    rand({16}).sin();
  }
  p.stop();
  p.export_chrome_trace(path.string());
  nlohmann::json trace = nlohmann::json::parse(std::ifstream(path));
  std::filesystem::remove(path);
  size_t complete = 0;
  for (const auto& e : trace["traceEvents"]) {
    if (e["ph"] != "X") continue;
    ++complete;
    EXPECT_TRUE(e["ts"].is_number() && e["dur"].is_number() && e["name"].is_string());
  }
  EXPECT_EQ(complete, p.events().size());
}

TEST(Profile, TablesAreSorted) {
  profile p;
  for (int i = 0; i < 5; ++i) rand({8}).sin();
  rand({300, 300}).matmul(rand({300, 300}));
  p.stop();
  std::string by_calls = p.key_averages().table("calls", 2);
  EXPECT_EQ(std::count(by_calls.begin(), by_calls.end(), '\n'), 3);
  EXPECT_NE(by_calls.find("aten::rand"), std::string::npos) << by_calls;
  EXPECT_NE(p.key_averages().table().find("aten::matmul"), std::string::npos);
}

TEST(Profile, CountsTheFlopOfProductsSumsAndElements) {
  Tensor a = rand({96, 128}), b = rand({128, 64});
  auto f = compile([&](const Tensor& x) { return x.matmul(b); });
  f(a);
  profile p;
  a.matmul(b);  // any size
  f(a);         // these sizes
  a.sum();
  a.exp();
  a.to(kInt32).bitwise_and(3);
  p.stop();
  auto flops = [&](const char* of) {
    double sum = 0;
    for (const Event& e : p.events())
      if (e.kind == Kind::Kernel && e.name.find(of) != std::string::npos) sum += e.flops;
    return sum;
  };
  EXPECT_EQ(flops("dot_general"), 2 * (2.0 * 96 * 128 * 64));
  EXPECT_EQ(flops(": exp"), 96 * 128);
  EXPECT_EQ(flops("bit_and"), 0);
  // In pieces, and the pieces' sums.
  EXPECT_GE(flops("reduce"), 96 * 128);
  EXPECT_LT(flops("reduce"), 1.1 * 96 * 128);
}

TEST(Profile, KeepsShapesAndSourcesThatAreAskedFor) {
  Tensor x = rand({4, 6}, requires_grad()), y = rand({6}, requires_grad());
  profiler::ProfileOptions options;
  options.record_shapes = options.with_stack = true;
  profile p(options);
  Tensor product = x * y;
  (product * 2).sum().backward();
  x.detach().exp();
  y.detach().exp();
  p.stop();
  std::map<std::string, std::string> shapes;
  for (const Event& e : p.events())
    if (e.kind == Kind::Operator) shapes[e.name] = e.shapes;
  EXPECT_EQ(shapes["SumBackward0"], "float32[]");
  EXPECT_EQ(shapes["MulBackward0"], "float32[4, 6]");
  EXPECT_EQ(find(p.key_averages(), Kind::Operator, "aten::exp")->calls, 2);
  std::set<std::string> apart;
  profiler::Averages averages = p.key_averages({.shapes = true, .source = true});
  for (const Average& a : averages.rows()) {
    if (a.name != "aten::exp") continue;
    EXPECT_EQ(a.calls, 1);
    apart.insert(a.shapes);
    // With debug information the line, else the function, as far as the linker keeps its name.
    if (a.source.find(".cpp:") != a.source.npos) {
      EXPECT_NE(a.source.find("profile.cpp:"), a.source.npos) << a.source;
    }
  }
  EXPECT_EQ(apart, (std::set<std::string>{"float32[4, 6]", "float32[6]"}));
}

TEST(Profile, SharesOfTheRoofline) {
  profiler::Roofline roof = profiler::measure_roofline(kCPU);
  EXPECT_GT(roof.bytes_per_second, 1e8);
  EXPECT_GT(roof.flops_per_second, 1e8);
  Tensor x = rand({1 << 22});
  profile p;
  x.exp();
  p.stop();
  profiler::Averages averages = p.key_averages();
  EXPECT_EQ(averages.table().find("roof %"), std::string::npos);
  averages.set_roofline(roof);
  EXPECT_NE(averages.table().find("roof %"), std::string::npos);
}

TEST(Profile, BadInput) {
  profile p;
  EXPECT_THROW(profile(), Error);
  EXPECT_THROW(p.key_averages().table("speed"), Error);
  EXPECT_THROW(p.export_chrome_trace("/no such folder/trace.json"), Error);
  p.stop();
  p.stop();
  profiler::ProfileOptions options;
  options.schedule = profiler::Schedule{.active = 0};
  EXPECT_THROW(profile{options}, Error);
  profile again;  // what was refused holds nothing
  EXPECT_TRUE(again.events().empty());
}

}  // namespace
}  // namespace brasa
