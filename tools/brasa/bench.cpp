#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include <brasa/device.h>
#include <brasa/error.h>
#include <brasa/generator.h>
#include <brasa/memory.h>
#include <brasa/profiler.h>
#include <brasa/stats.h>
#include <brasa/stream.h>
#include <brasa/threads.h>

#include "bench_peers.h"
#include "bench_sweep.h"
#include "bench_workloads.h"
#include "commands.h"
#include "processes.h"

namespace brasa::tool {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

struct Options {
  std::vector<std::string> names;
  std::string modes = "eager,default", device = "cpu", inputs;
  uint64_t seed = 0;
  bool profile = false, json = false;
  std::string trace;
  double seconds = 4;
  int threads = 0;
  bool list = false, operators = false, peers = false;
  SweepOptions sweep;
  PeersOptions with;
  std::string measure, first, together, work;  // in the process that does the work: "workload mode"
};

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }
double rounded(double v, double digits) { return std::round(v * digits) / digits; }

Workload find(const std::string& name, const Options& o) {
  for (const Workload& w : workloads())
    if (w.name == name) return w;
  if (is_archive(name)) return archive(name, o.inputs);
  std::string names;
  for (const Workload& w : workloads()) names += "\n  " + w.name;
  throw Error(fmt::format("there is no workload '{}'. There are:{}", name, names));
}

// What runs in three runs: as a table on the error stream, as a file in a folder.
void profile_runs(const std::function<void()>& work, const std::string& name, const std::string& mode, Device device,
                  const Options& o) {
  profiler::ProfileOptions detail;
  detail.record_shapes = true;
  profiler::profile profile(detail);
  for (int i = 0; i < 3; ++i) {
    profiler::record_function range("run");
    work();
  }
  profile.stop();
  if (o.profile) {
    profiler::Averages averages = profile.key_averages();
    averages.set_roofline(profiler::measure_roofline(device));
    std::fputs(averages.table("self_time", 60).c_str(), stderr);
  }
  if (!o.trace.empty()) profile.export_chrome_trace((fs::path(o.trace) / (name + "-" + mode + ".json")).string());
}

Prepared prepare(const std::string& name, const std::string& mode, const Options& o) {
  set_default_device(Device(o.device));
  manual_seed(o.seed);
  return find(name, o).prepare(mode);
}

// The call and what it leaves for later, in seconds.
double time_call(const Prepared& work) {
  Device device = get_default_device();
  synchronize(device);
  Clock::time_point start = Clock::now();
  work.run();
  synchronize(device);
  return seconds_since(start);
}

// Runs until nothing that ran is optimized any more.
void warm_up(const Prepared& work, double seconds) {
  int64_t before = -1;
  for (Clock::time_point begin = Clock::now(); before != stats().kernels_optimized && seconds_since(begin) < seconds;) {
    before = stats().kernels_optimized;
    for (int i = 0; i < 2; ++i) work.run();
    wait_for_optimized_kernels();
  }
}

Json first_call(const std::string& name, const std::string& mode, const Options& o) {
  return time_call(prepare(name, mode, o));
}

// Made as tools/peers/peers.py makes its numbers: the first call, some more, then as many as fit, at least three.
Json measure(const std::string& name, const std::string& mode, const Options& o) {
  Prepared work = prepare(name, mode, o);
  Device device = get_default_device();
  double first = time_call(work);
  warm_up(work, o.seconds);
  synchronize(device);
  device.is_cpu() ? reset_peak_memory_stats() : reset_peak_memory_stats(device);
  std::vector<double> times, cpu_times;
  for (Clock::time_point begin = Clock::now(); times.size() < 3 || seconds_since(begin) < o.seconds;) {
    std::clock_t cpu = std::clock();
    Event before(device);
    work.run();
    times.push_back(before.elapsed_time(Event(device)));
    cpu_times.push_back(1e3 * static_cast<double>(std::clock() - cpu) / CLOCKS_PER_SEC);
  }
  std::sort(times.begin(), times.end());
  std::sort(cpu_times.begin(), cpu_times.end());
  // Calls that do not wait for each other: what the host does is hidden behind the device's work.
  Clock::time_point start = Clock::now();
  for (size_t i = 0; i < times.size(); ++i) work.run();
  synchronize(device);
  double together = 1e3 * seconds_since(start) / static_cast<double>(times.size());
  int64_t peak = device.is_cpu() ? memory_stats().peak : memory_stats(device).allocated_bytes.peak;
  if (o.profile || !o.trace.empty()) profile_runs(work.run, name, mode, device, o);
  return {{"workload", name},
          {"mode", mode},
          {"median_ms", rounded(times[times.size() / 2], 1e4)},
          {"min_ms", rounded(times[0], 1e4)},
          {"pipelined_ms", rounded(together, 1e4)},
          {"cpu_median_ms", rounded(cpu_times[times.size() / 2], 1e4)},
          {"cpu_min_ms", rounded(cpu_times[0], 1e4)},
          {"device", device.str()},
          {"first_s", rounded(first, 1e4)},
          {"warm_first_s", nullptr},
          {"peak_mb", rounded(static_cast<double>(peak) / 1e6, 10)},
          {"compilations", stats().compilations},
          {"runs", times.size()},
          {"params", work.parameters},
          {"seed", o.seed}};
}

struct Rate {
  double calls_per_second, cpu_us;  // cpu_us: of one call, which other programs on the machine change less
};

// Of all of these threads, which call one function; operators work on the thread that calls them.
Rate rate_of(const std::function<void()>& f, int threads, double seconds) {
  std::barrier start(threads + 1);
  std::atomic<bool> stop = false;
  std::atomic<int64_t> calls = 0;
  std::vector<std::thread> callers;
  for (int i = 0; i < threads; ++i)
    callers.emplace_back([&] {
      f();
      start.arrive_and_wait();
      int64_t n = 0;
      for (; !stop; ++n) f();
      calls += n;
    });
  start.arrive_and_wait();
  Clock::time_point begin = Clock::now();
  std::clock_t cpu = std::clock();
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  stop = true;
  for (std::thread& t : callers) t.join();
  auto n = static_cast<double>(calls);
  return {n / seconds_since(begin), 1e6 * static_cast<double>(std::clock() - cpu) / CLOCKS_PER_SEC / n};
}

Json measure_together(const std::string& name, const std::string& mode, const Options& o) {
  set_num_threads(1);
  Prepared work = prepare(name, mode, o);
  warm_up(work, o.seconds);
  Rate alone = rate_of(work.run, 1, o.seconds), together = rate_of(work.run, o.threads, o.seconds);
  return {{"workload", name},
          {"mode", mode},
          {"threads", o.threads},
          {"cores", std::thread::hardware_concurrency()},
          {"calls_per_s_alone", rounded(alone.calls_per_second, 1)},
          {"calls_per_s", rounded(together.calls_per_second, 1)},
          {"ratio", rounded(together.calls_per_second / alone.calls_per_second, 1e3)},
          {"cpu_us_alone", rounded(alone.cpu_us, 10)},
          {"cpu_us", rounded(together.cpu_us, 10)}};
}

// What the kernels of one run compute, read and write.
Json work_of(const std::string& name, const std::string& mode, const Options& o) {
  Prepared work = prepare(name, mode, o);
  for (int i = 0; i < 2; ++i) work.run();
  profiler::profile profile;
  work.run();
  profile.stop();
  double flops = 0, bytes = 0;
  for (const profiler::Event& e : profile.events())
    if (e.kind == profiler::Kind::Kernel) {
      flops += e.flops;
      bytes += static_cast<double>(e.bytes);
    }
  return {{"flops", flops}, {"bytes", bytes}};
}

// A new process, so that nothing is left over from another measurement; what it prints.
std::string in_process(const std::string& arguments, const fs::path& cache) {
  Finished f = run_command(fmt::format("BRASA_CACHE_DIR={} {} bench {}", quoted(cache.string()),
                                       quoted(this_program().string()), arguments));
  if (f.status != 0) throw Error(fmt::format("'bench {}' {}", arguments, f.failure()));
  return f.out;
}

std::string text_of(const Json& line) {
  return fmt::format(
      "{} {}: {} ms, the fastest of {} {} ms; first call {} s, with kernels on disk {} s; {} MB; seed {}",
      line["workload"].get<std::string>(), line["mode"].get<std::string>(), line["median_ms"].get<double>(),
      line["runs"].get<size_t>(), line["min_ms"].get<double>(), line["first_s"].get<double>(),
      line["warm_first_s"].get<double>(), line["peak_mb"].get<double>(), line["seed"].get<uint64_t>());
}

// An empty disk cache for the first call, the same one again for the warm first call.
void report(const std::string& name, const std::string& mode, const Options& o) {
  ScratchFolder cache;
  std::string which =
      fmt::format("{} --seconds {} --device {} --seed {}{}{}", quoted(name + " " + mode), o.seconds, o.device, o.seed,
                  o.inputs.empty() ? "" : " --inputs " + quoted(o.inputs), o.profile ? " --profile" : "");
  if (!o.trace.empty()) which += " --trace " + quoted(o.trace);
  Json line;
  if (o.threads) {
    line = Json::parse(in_process(fmt::format("--together {} --threads {}", which, o.threads), cache.path()));
  } else {
    line = Json::parse(in_process("--measure " + which, cache.path()));
    line["warm_first_s"] = rounded(std::stod(in_process("--first " + which, cache.path())), 1e4);
  }
  bool for_a_person = is_archive(name) && !o.json && !o.threads;
  std::printf("%s\n", (for_a_person ? text_of(line) : line.dump()).c_str());
  std::fflush(stdout);
}

std::pair<std::string, std::string> split(const std::string& pair) {
  size_t at = pair.rfind(' ');  // a file's name may have some
  if (at == std::string::npos) throw Error("expected 'workload mode', got '" + pair + "'");
  return {pair.substr(0, at), pair.substr(at + 1)};
}

SweepOptions sweep_of(const Options& o) {
  SweepOptions s = o.sweep;
  s.profile = o.profile;
  s.only = o.names;
  s.seed = o.seed;
  s.device = o.device;
  s.seconds = o.seconds;
  s.cpu_time = o.with.cpu_time;
  return s;
}

PeersOptions peers_of(const Options& o) {
  PeersOptions p = o.with;
  p.names = o.names;
  p.modes = CLI::detail::split(o.modes, ',');
  p.seconds = o.seconds;
  p.seed = o.seed;
  p.json = o.json;
  return p;
}

// In the process that does the work: what to do for "workload mode".
struct Inner {
  std::string Options::* which;
  Json (*work)(const std::string& name, const std::string& mode, const Options& o);
};
constexpr Inner kInner[] = {{&Options::measure, measure},
                            {&Options::first, first_call},
                            {&Options::together, measure_together},
                            {&Options::work, work_of}};

int run(const Options& o) {
  if (o.operators) return sweep(sweep_of(o));
  if (o.list) {
    for (const Workload& w : workloads()) std::printf("%-28s %s\n", w.name.c_str(), w.what.c_str());
    return 0;
  }
  for (const Inner& inner : kInner)
    if (!(o.*inner.which).empty()) {
      auto [name, mode] = split(o.*inner.which);
      std::printf("%s\n", inner.work(name, mode, o).dump().c_str());
      return 0;
    }
  std::vector<std::string> names = o.names, modes = CLI::detail::split(o.modes, ',');
  if (names.empty())
    for (const Workload& w : workloads()) names.push_back(w.name);
  for (const std::string& name : names) find(name, o);
  if (o.peers) return compare_with_peers(peers_of(o));
  int failures = 0;
  for (const std::string& name : names)
    for (const std::string& mode : modes) try {
        report(name, mode, o);
      } catch (const std::exception& e) {
        std::fprintf(stderr, "%s, %s: %s\n", name.c_str(), mode.c_str(), e.what());
        ++failures;
      }
  return failures == 0 ? 0 : 1;
}

}  // namespace

void add_bench(CLI::App& app) {
  auto o = std::make_shared<Options>();
  CLI::App* c = app.add_subcommand(
      "bench", "Measure the standard workloads, one line of JSON for each workload and mode, or exported programs");
  c->footer(
      "Each measurement is a process of its own with an empty disk cache: first_s is its first call, warm_first_s the first call of\n"
      "another process with the same cache; peak_mb is the most memory that tensors took; cpu_*_ms is all threads' time on processors.\n"
      "A training step is compiled whole.\n\n"
      "Examples:\n"
      "  brasa bench                                   every workload, eager and compiled\n"
      "  brasa bench pointwise_4M vit_tiny_infer_b8    two of them\n"
      "  brasa bench gpt_train_b4_t256 --modes default --seconds 10\n"
      "  brasa bench mlp_infer_b8 --profile            where its time goes\n"
      "  brasa bench mlp_infer_b8 --threads 8          calls in a second of 8 threads on one function, and of one\n"
      "  brasa bench net.pt2 --seed 1                  an exported program, on inputs of the archive's sizes\n"
      "  brasa bench --operators --vectors DIR         random operators, larger calls of reference vectors\n"
      "  brasa bench --operators --calls FILE          operators, the calls of a file\n"
      "  brasa bench --peers --python venv/bin/python --plot peers.svg\n"
      "                                                Brasa and other libraries in turn, as a table and a picture\n"
      "  brasa bench --list                            what there is");
  c->add_option("workload", o->names, "names of workloads, or archives (.pt2); all workloads if there is none");
  c->add_option("--modes", o->modes, "eager and compile's modes, separated by commas")->capture_default_str();
  c->add_option("--seconds", o->seconds, "how long to measure each")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  c->add_option("--device", o->device, "where tensors are: cpu, cuda, cuda:1, emu")->capture_default_str();
  c->add_flag(
      "--profile", o->profile,
      "then profile three runs: operators and kernels with times, bytes and FLOP as a table on the error stream");
  c->add_option("--trace", o->trace, "the same as a trace for Perfetto, WORKLOAD-MODE.json in this folder")
      ->check(CLI::ExistingDirectory);
  c->add_option("--threads", o->threads, "calls in a second of so many threads that call one function, and of one")
      ->check(CLI::PositiveNumber);
  c->add_option("--seed", o->seed, "of random numbers: weights, an archive's inputs")->capture_default_str();
  c->add_option("--inputs", o->inputs, "an archive's inputs in0, in1, …: a safetensors file; else they are drawn");
  c->add_flag("--json", o->json, "a line of JSON for archives and for --peers too");
  c->add_flag("--list", o->list, "list the workloads");
  add_sweep(*c, o->operators, o->sweep);
  add_peers(*c, o->peers, o->with);
  c->add_option("--measure", o->measure)->group("");
  c->add_option("--first", o->first)->group("");
  c->add_option("--together", o->together)->group("");
  c->add_option("--work", o->work)->group("");
  c->callback([o] {
    int status = run(*o);
    if (status != 0) throw CLI::RuntimeError(status);
  });
}

}  // namespace brasa::tool
