#include "bench_peers.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include <brasa/error.h>
#include <brasa/progress.h>
#include <brasa/threads.h>

#include "bench_workloads.h"
#include "comparison.h"
#include "processes.h"

namespace brasa::tool {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr int kLongest = 900;   // seconds of one process
constexpr int kTimedOut = 124;  // what `timeout` ends with then

std::string last_line(const std::string& text) {
  size_t end = text.find_last_not_of(" \t\r\n");
  if (end == std::string::npos) return "";
  size_t begin = text.find_last_of('\n', end);
  return text.substr(begin + 1, end - begin);
}

std::string contents(const fs::path& path) {
  std::ostringstream out;
  out << std::ifstream(path).rdbuf();
  return out.str();
}

std::string processor() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "unknown processor";
}

double load() {
  double average = 0;
  return ::getloadavg(&average, 1) == 1 ? average : 0;
}

struct Runner {
  Candidate candidate;
  std::set<std::string> workloads;  // of a peer
  bool archives = false;            // does it run exported programs?
  std::string mode;                 // of Brasa
};

class Peers {
 public:
  explicit Peers(const PeersOptions& o) : o_(o) {
    fs::path beside = this_program().parent_path().parent_path() / "share/brasa/peers/peers.py";
    if (!o.scripts.empty())
      script_ = fs::path(o.scripts) / "peers.py";
    else
      script_ = fs::exists(beside) ? beside : fs::path(BRASA_SOURCE_DIR) / "../peers/peers.py";
    if (!fs::exists(script_)) throw Error("there is no " + script_.string() + "; name its folder by --peer-scripts");
  }

  Comparison compare() {
    Comparison out;
    out.processor = processor();
    out.threads = get_num_threads();
    out.rounds = o_.rounds;
    out.cpu_time = o_.cpu_time;
    out.load_before = load();
    std::vector<Runner> runners = find_runners(out.missing);
    for (const Runner& r : runners) out.candidates.push_back(r.candidate);
    std::vector<std::string> names = names_of(runners);
    size_t steps = 0;
    for (const std::string& name : names)
      for (const Runner& r : runners) steps += has(r, name) ? static_cast<size_t>(o_.rounds) : 0;
    {
      ProgressBar progress(steps, /*lines=*/true);
      for (const std::string& name : names) {
        out.rows.push_back(row(name, runners, out, progress));
        raise(out.roofline, profiler::measure_roofline(kCPU));
      }
    }
    for (size_t i = 0; i < out.rows.size(); ++i) out.rows[i].floor_ms = floor_of(works_[i], out.roofline);
    out.load_after = load();
    return out;
  }

 private:
  struct Work {
    double flops = 0, bytes = 0;
  };

  static bool has(const Runner& r, const std::string& name) {
    return r.candidate.ours || (is_archive(name) ? r.archives : r.workloads.contains(name));
  }

  // What others do on the machine makes the lower ones wrong.
  static void raise(profiler::Roofline& peak, const profiler::Roofline& measured) {
    peak.flops_per_second = std::max(peak.flops_per_second, measured.flops_per_second);
    peak.bytes_per_second = std::max(peak.bytes_per_second, measured.bytes_per_second);
  }

  static std::optional<double> floor_of(const std::optional<Work>& work, const profiler::Roofline& peak) {
    if (!work) return std::nullopt;
    return 1e3 * std::max(work->flops / peak.flops_per_second, work->bytes / peak.bytes_per_second);
  }

  std::string python(const std::string& arguments) const {
    return fmt::format("timeout {} {} {} {}", kLongest, quoted(o_.python), quoted(script_.string()), arguments);
  }
  std::string brasa(const std::string& arguments, const fs::path& cache) const {
    return fmt::format("BRASA_CACHE_DIR={} timeout {} {} bench {}", quoted(cache.string()), kLongest,
                       quoted(this_program().string()), arguments);
  }

  // What it prints; an error has its error stream's last line.
  std::string output_of(const std::string& command) const {
    fs::path errors = scratch_.path() / "errors";
    Finished f = run_command(command + " 2>" + quoted(errors.string()));
    if (f.status == 0) return f.out;
    if (f.status == kTimedOut) throw Error(fmt::format("no result within {} s", kLongest));
    std::string said = last_line(contents(errors));
    throw Error(said.empty() || f.status < 0 ? f.failure() : said);
  }

  Json line_of(const std::string& command) const {
    std::string line = last_line(output_of(command));
    Json j = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!j.is_object()) throw Error("expected a line of JSON, got '" + line + "'");
    return j;
  }

  std::vector<Runner> find_runners(std::vector<std::pair<std::string, std::string>>& missing) const {
    std::vector<Runner> out;
    for (const std::string& mode : o_.modes)
      out.push_back({{"brasa " + mode, "", true, mode != "eager"}, {}, false, mode});
    std::string listed;
    try {
      listed = output_of(python("list"));
    } catch (const Error& e) {
      throw Error(
          fmt::format("cannot list the peers of '{}': {}; --python names another interpreter", o_.python, e.what()));
    }
    std::istringstream lines(listed);
    for (std::string line; std::getline(lines, line);) {
      Json peer = Json::parse(line);
      if (!o_.only.empty() && std::find(o_.only.begin(), o_.only.end(), peer["peer"]) == o_.only.end()) continue;
      if (peer.contains("missing")) {
        missing.emplace_back(peer["peer"], peer["missing"]);
        continue;
      }
      out.push_back({{peer["peer"], peer["version"]},
                     peer["workloads"].get<std::set<std::string>>(),
                     peer.value("archives", false),
                     ""});
    }
    return out;
  }

  std::vector<std::string> names_of(const std::vector<Runner>& runners) const {
    if (!o_.names.empty()) return o_.names;
    std::vector<std::string> out;
    for (const Workload& w : workloads())
      if (std::any_of(runners.begin(), runners.end(),
                      [&](const Runner& r) { return !r.candidate.ours && r.workloads.contains(w.name); }))
        out.push_back(w.name);
    return out;
  }

  // All rounds of one workload, so that what is compared is measured close together.
  Comparison::Row row(const std::string& name, const std::vector<Runner>& runners, const Comparison& c,
                      ProgressBar& progress) {
    Comparison::Row out{name, std::nullopt, {}};
    for (const Runner& r : runners) out.timings.push_back(has(r, name) ? std::optional(Timing()) : std::nullopt);
    ScratchFolder caches;  // empty in the first round
    for (int round = 0; round < o_.rounds; ++round)
      for (size_t i = 0; i < runners.size(); ++i) {
        // Every second round in the opposite order.
        size_t at = round % 2 ? runners.size() - 1 - i : i;
        if (!out.timings[at]) continue;
        Timing& t = *out.timings[at];
        if (!t.error.empty()) {
          progress.skip();
          continue;
        }
        progress.next(fmt::format("{}, {}, round {}", name, runners[at].candidate.name, round + 1));
        measure(name, runners[at], c.threads, caches.path(), t);
      }
    works_.push_back(work_of(name, caches.path()));
    return out;
  }

  void measure(const std::string& name, const Runner& r, int threads, const fs::path& caches, Timing& out) const try {
    // The peers share a folder: some read what others exported.
    fs::path cache = caches / (r.candidate.ours ? r.mode : "peers");
    fs::create_directories(cache);
    std::string rest = fmt::format("--seconds {} --seed {}", o_.seconds, o_.seed);
    Json line = line_of(r.candidate.ours
                            ? brasa(fmt::format("--measure {} {}", quoted(name + " " + r.mode), rest), cache)
                            : python(fmt::format("measure {} {} {} --threads {} --cache {}", quoted(r.candidate.name),
                                                 quoted(name), rest, threads, quoted(cache.string()))));
    auto number = [&](const std::string& key) -> double {
      if (!line.contains(key) || !line[key].is_number())
        throw Error(fmt::format("the line of JSON has no number {}: {}", key, line.dump()));
      return line[key];
    };
    std::string clock = o_.cpu_time ? "cpu_" : "";
    double median = number(clock + "median_ms"), least = number(clock + "min_ms"), first = number("first_s");
    out.medians.push_back(median);
    out.leasts.push_back(least);
    out.firsts.push_back(first);
  } catch (const std::exception& e) {
    out.error = last_line(e.what());
  }

  std::optional<Work> work_of(const std::string& name, const fs::path& caches) const try {
    Json line = line_of(brasa("--work " + quoted(name + " default"), caches / "default"));
    return Work{line["flops"], line["bytes"]};
  } catch (const std::exception&) {
    return std::nullopt;  // the failure is in the row of that mode
  }

  const PeersOptions& o_;
  fs::path script_;
  ScratchFolder scratch_;
  std::vector<std::optional<Work>> works_;  // of the rows
};

}  // namespace

void add_peers(CLI::App& bench, bool& peers, PeersOptions& o) {
  CLI::Option* flag = bench.add_flag(
      "--peers", peers,
      "the same workloads in PyTorch, JAX, ONNX Runtime and OpenVINO, as far as a Python has them, and a table of all");
  bench.add_option("--python", o.python, "the interpreter that has the peers")->needs(flag)->capture_default_str();
  bench.add_option("--only", o.only, "these peers, separated by commas, such as 'torch eager,jax'; else all")
      ->needs(flag)
      ->delimiter(',');
  bench.add_option("--rounds", o.rounds, "how often each is measured, in turn, in processes of their own")
      ->needs(flag)
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  bench.add_flag(
      "--cpu-time", o.cpu_time,
      "with --peers and --operators: the time of all threads on processors; with BRASA_NUM_THREADS=1, which peers "
      "follow, what else runs on the machine matters less");
  bench.add_option("--plot", o.plot, "a file for the picture of the table, SVG")->needs(flag);
  bench.add_option("--peer-scripts", o.scripts, "the folder of peers.py; else where it was installed, or its source")
      ->needs(flag);
}

int compare_with_peers(const PeersOptions& o) {
  Comparison c = Peers(o).compare();
  std::printf("%s\n",
              o.json ? json_of(c).dump(-1, ' ', false, Json::error_handler_t::replace).c_str() : table_of(c).c_str());
  if (!o.plot.empty()) {
    std::ofstream file(o.plot);
    file << plot_of(c);
    if (!file.flush()) throw Error("cannot write " + o.plot);
  }
  for (const Comparison::Row& row : c.rows)
    for (size_t i = 0; i < c.candidates.size(); ++i)
      if (c.candidates[i].ours && !row.timings[i]->error.empty()) return 1;
  return 0;
}

}  // namespace brasa::tool
