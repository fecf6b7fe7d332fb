#pragma once

// What the programs share: data and weights that are the same in every library, and the loop that times steps.

#include <torch/torch.h>

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#if __has_include(<brasa/compile.h>)
#include <brasa/profiler.h>
#include <brasa/stats.h>
#define WITH_BRASA 1
#endif

using torch::Tensor;

/// Numbers between -1 and 1 by a closed formula.
inline Tensor waves(std::vector<int64_t> shape, double phase = 0) {
  int64_t count = 1;
  for (int64_t size : shape) count *= size;
  Tensor i = torch::arange(count, torch::kFloat64);
  return torch::sin(i * 2.39 + i * i * 0.013 + phase).to(torch::kFloat32).view(shape);
}

/// Weights by the same formula, scaled as He et al. (2015) have it; biases are 0, norms' weights stay 1.
inline void init_weights(torch::nn::Module& module) {
  torch::NoGradGuard no_grad;
  double phase = 0.3;
  for (Tensor& p : module.parameters()) {
    double fan = p.dim() < 2 ? 0 : static_cast<double>(p.numel() / p.size(0));
    if (p.dim() > 1) p.copy_(waves(p.sizes().vec(), phase) * (2 / std::sqrt(fan)));
    if (p.dim() == 1 && p.abs().max().item<float>() < 1) p.zero_();
    phase += 1.1;
  }
}

struct Program {
  const char* name;
  std::function<Tensor()> step;                             ///< gives what is compared, a number
  std::function<void(int64_t call)> next = [](int64_t) {};  ///< sets the step's data; not timed
  double tolerance = 2e-3;  ///< of what is compared, relative; larger where a step draws random numbers
};

inline double seconds(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Times the step: NAME [--compile] [--seconds S] [--cpu-time] [--profile]; the last, of Brasa's, shows where the time of some more goes.
inline int run(Program program, int argc, char** argv) {
  bool compile = false, profile = false;
  double budget = 2;
  clockid_t clock = CLOCK_MONOTONIC;
  for (int i = 1; i < argc; ++i) {
    if (!std::strcmp(argv[i], "--compile")) compile = true;
    if (!std::strcmp(argv[i], "--profile")) profile = true;
    if (!std::strcmp(argv[i], "--cpu-time")) clock = CLOCK_PROCESS_CPUTIME_ID;
    if (!std::strcmp(argv[i], "--seconds") && i + 1 < argc) budget = std::atof(argv[++i]);
  }
#ifdef WITH_BRASA
  auto compiled = brasa::compile(program.step);
  if (compile) program.step = [&] { return compiled(); };
#endif

  std::vector<double> times;
  double checked = 0, first = 0;
  const int64_t kChecked = 8;
  auto call = [&](int64_t i) {
    program.next(i);
    double start = seconds(clock);
    Tensor result = program.step();
    double value = result.item<double>();
    times.push_back(seconds(clock) - start);
    return value;
  };
  for (int64_t i = 0; i < kChecked; ++i) checked = call(i);
  first = times[0];
#ifdef WITH_BRASA
  brasa::wait_for_optimized_kernels();
#endif
  times.clear();
  double end = seconds(CLOCK_MONOTONIC) + budget;
  for (int64_t i = kChecked; times.size() < 5 || seconds(CLOCK_MONOTONIC) < end; ++i) call(i);
  std::sort(times.begin(), times.end());
  std::printf(
      R"({"name": "%s", "mode": "%s", "median_ms": %.4g, "least_ms": %.4g, "first_s": %.4g, "check": %.8g, "tolerance": %g})"
      "\n",
      program.name, compile ? "compiled" : "eager", 1e3 * times[times.size() / 2], 1e3 * times[0], first, checked,
      program.tolerance);
#ifdef WITH_BRASA
  if (profile) {
    brasa::profiler::profile recording({.record_shapes = true});
    for (int64_t i = 0; i < kChecked; ++i) call(i);
    recording.stop();
    std::puts(recording.key_averages({.shapes = true}).table("self_time", 60).c_str());
  }
#endif
  return 0;
}
