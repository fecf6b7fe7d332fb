#include "bench_sweep.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>
#include <random>
#include <set>

#include <brasa/call.h>
#include <brasa/device.h>
#include <brasa/elements.h>
#include <brasa/error.h>
#include <brasa/profiler.h>
#include <brasa/stats.h>

#include "compare.h"
#include "files.h"
#include "run_ops.h"

namespace brasa::tool {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;
using Sizes = std::map<int64_t, int64_t>;  // of a vector's call: what becomes of each

constexpr int64_t kMostElements = int64_t{1} << 25;
constexpr int64_t kLongest = 1 << 20;  // a dimension
constexpr int kMostWarmUps = 5;

double ms_since(Clock::time_point start) { return 1e3 * std::chrono::duration<double>(Clock::now() - start).count(); }

// Evenly drawn numbers in [low, high]; of whole numbers both ends are among them.
verify::Array drawn(const json& j, std::mt19937_64& random) {
  verify::Array a{verify::dtype_named(j.at("dtype")), j.at("shape"), {}, j.value("strides", std::vector<int64_t>{})};
  double low = j.at("low"), high = j.at("high");
  int64_t n = 1;
  for (int64_t size : a.shape) n *= size;
  a.bytes.resize(static_cast<size_t>(n * size_of(a.dtype)));
  visit_dtype(a.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    for (int64_t i = 0; i < n; ++i) {
      double u = static_cast<double>(random() >> 11) * 0x1p-53;
      T x{};
      if constexpr (std::is_integral_v<T>)
        x = static_cast<T>(std::floor(low + u * (high - low + 1)));
      else if constexpr (std::is_convertible_v<T, double>)
        x = static_cast<T>(low + u * (high - low));
      else
        x = T(low + u * (high - low));
      std::memcpy(a.bytes.data() + i * static_cast<int64_t>(sizeof x), &x, sizeof x);
    }
  });
  return a;
}

class Call {
 public:
  Call(const json& call, const SweepOptions& o) : cpu_time_(o.cpu_time) {
    std::mt19937_64 random(o.seed);
    verify::Entry entry = verify::read_call(call, [&](const json& tensor) { return drawn(tensor, random); });
    run_ = verify::repeated(verify::operator_name(call.at("overload")), std::move(entry), o.backend);
    run_();
  }
  double once() {
    std::clock_t cpu = std::clock();
    Clock::time_point start = Clock::now();
    run_();
    return cpu_time_ ? 1e3 * static_cast<double>(std::clock() - cpu) / CLOCKS_PER_SEC : ms_since(start);
  }
  // The least of as many calls as fit, at least three, when nothing that ran is optimized any more.
  double least(double seconds) {
    double best = once();
    int64_t before = -1;
    for (int i = 0; i < kMostWarmUps && before != stats().kernels_optimized; ++i) {
      before = stats().kernels_optimized;
      best = std::min(best, once());
      wait_for_optimized_kernels();
    }
    Clock::time_point begin = Clock::now();
    for (int i = 0; i < 2 || ms_since(begin) < 1e3 * seconds; ++i) best = std::min(best, once());
    return best;
  }
  // What runs in three calls, as a table on the error stream.
  void profile() {
    profiler::ProfileOptions detail;
    detail.record_shapes = true;
    profiler::profile calls(detail);
    for (int i = 0; i < 3; ++i) run_();
    calls.stop();
    std::fputs(calls.key_averages().table("self_time", 60).c_str(), stderr);
  }

 private:
  std::function<void()> run_;
  bool cpu_time_;
};

// f(tensor) for every tensor among a call's arguments, g(list) for every list of whole numbers.
void visit(json& j, const std::function<void(json&)>& f, const std::function<void(json&)>& g) {
  if (j.is_object() && j.contains("tensor")) return f(j);
  if (j.is_array() && std::all_of(j.begin(), j.end(), [](const json& i) { return i.is_number_integer(); })) return g(j);
  if (j.is_array() || (j.is_object() && (j.contains("args") || !j.contains("dtype"))))
    for (json& item : j) visit(item, f, g);
}

// A vector's call with larger tensors. Sizes that are equal grow together, lists of sizes with them where the call asks for it.
class Growing {
 public:
  Growing(const json& vector, const std::string& overload, const verify::Entry& entry, const SweepOptions& o)
      : o_(o), call_{{"overload", overload}, {"args", vector.at("args")}, {"kwargs", vector.at("kwargs")}} {
    size_t next = 0;
    std::set<std::string> seen;
    each_tensor(call_, [&](json& t) {
      if (!seen.insert(t.at("tensor")).second) return;
      bounds_[t.at("tensor")] = bounds(entry.tensors.at(next++));
    });
    each_tensor(call_, [&](json& t) {
      auto [low, high] = bounds_.at(t.at("tensor"));
      t["low"] = low;
      t["high"] = high;
      t.erase("strides");
      for (int64_t size : t.at("shape"))
        if (size > 1) sizes_[size] = size;
    });
    if (!o.gradients || !vector.contains("gradients")) return;
    call_["gradients"] = json::array();
    for (auto& [name, gradient] : vector.at("gradients").items()) call_["gradients"].push_back(name);
  }

  // The call that takes at least the milliseconds that are asked for, if there is one.
  std::optional<json> grown(std::mt19937_64& random) {
    std::vector<int64_t> order;
    for (auto& [size, now] : sizes_) order.push_back(size);
    std::shuffle(order.begin(), order.end(), random);
    for (bool lists : {false, true}) {
      lists_ = lists;
      for (int64_t size : order)
        while (sizes_[size] * 4 <= kLongest) {
          Sizes before = sizes_;
          sizes_[size] *= 4;
          std::optional<double> ms = time();
          if (!ms) {
            sizes_ = before;
            break;
          }
          if (*ms >= o_.milliseconds) return call();
          // Other sizes grow, too, where one alone would make a tensor that is all one dimension.
          if (sizes_[size] >= 512 && size != order.back()) break;
        }
    }
    return std::nullopt;
  }

 private:
  static void each_tensor(json& call, const std::function<void(json&)>& f) {
    visit(call["args"], f, [](json&) {});
    visit(call["kwargs"], f, [](json&) {});
  }
  static std::pair<double, double> bounds(const verify::Array& a) {
    double low = INFINITY, high = -INFINITY;
    int64_t n = static_cast<int64_t>(a.bytes.size()) / size_of(a.dtype);
    for (int64_t i = 0; i < n; ++i) {
      double v = verify::element(a, i).real();
      if (!std::isfinite(v)) continue;
      low = std::min(low, v);
      high = std::max(high, v);
    }
    return low <= high ? std::pair(low, high) : std::pair(0.0, 1.0);
  }

  json call() const {
    json out = call_;
    auto grow = [&](json& sizes) {
      for (json& s : sizes)
        if (auto it = sizes_.find(s.get<int64_t>()); it != sizes_.end()) s = it->second;
    };
    auto tensor = [&](json& t) { grow(t["shape"]); };
    auto list = [&](json& sizes) {
      if (lists_) grow(sizes);
    };
    visit(out["args"], tensor, list);
    visit(out["kwargs"], tensor, list);
    return out;
  }

  std::optional<double> time() const {
    json grown = call();
    int64_t elements = 0;
    each_tensor(grown, [&](json& t) {
      int64_t n = 1;
      for (int64_t size : t.at("shape")) n = std::min(n * size, 2 * kMostElements);
      elements += n;
    });
    if (elements > kMostElements) return std::nullopt;
    try {
      Call c(grown, o_);
      return std::min(c.once(), c.once());
    } catch (const std::exception&) {
      return std::nullopt;
    }
  }

  const SweepOptions& o_;
  json call_;
  std::map<std::string, std::pair<double, double>> bounds_;
  Sizes sizes_;
  bool lists_ = false;
};

bool wanted(const SweepOptions& o, const std::string& overload) {
  return o.only.empty() || std::any_of(o.only.begin(), o.only.end(), [&](const std::string& name) {
           return overload == name || overload.starts_with("aten." + name + ".");
         });
}

void print(json line) {
  std::printf("%s\n", line.dump().c_str());
  std::fflush(stdout);
}

json timed(json call, const SweepOptions& o) {
  try {
    Call c(call, o);
    call["ms"] = std::round(1e4 * c.least(o.seconds)) / 1e4;
    if (o.profile) c.profile();
  } catch (const std::exception& e) {
    call["error"] = e.what();
  }
  return call;
}

// Overloads in a random order, of each a random call that can grow.
int draw(const SweepOptions& o) {
  std::mt19937_64 random(o.seed);
  std::vector<std::string> overloads;
  for (auto& [overload, card] : verify::read_cards(o.vectors))
    if (wanted(o, overload) && has_operator(verify::operator_name(overload))) overloads.push_back(overload);
  std::shuffle(overloads.begin(), overloads.end(), random);
  size_t drawn = 0;
  for (size_t i = 0; i < overloads.size() && drawn < o.draws; ++i) {
    verify::VectorFile vectors(o.vectors + "/" + overloads[i]);
    std::vector<size_t> entries(vectors.size());
    for (size_t k = 0; k < entries.size(); ++k) entries[k] = k;
    std::shuffle(entries.begin(), entries.end(), random);
    constexpr size_t kTries = 4;
    for (size_t k = 0; k < std::min(kTries, entries.size()); ++k) try {
        verify::Entry entry = vectors.entry(entries[k]);
        std::optional<json> call = Growing(vectors.call(entries[k]), overloads[i], entry, o).grown(random);
        if (!call) continue;
        (*call)["seed"] = o.seed;
        print(timed(*call, o));
        ++drawn;
        break;
      } catch (const verify::Unsupported&) {
      }
  }
  return 0;
}

}  // namespace

void add_sweep(CLI::App& bench, bool& operators, SweepOptions& o) {
  CLI::Option* flag =
      bench.add_flag("--operators", operators,
                     "time operators, those that are named or random ones: a line of JSON each, the call and the "
                     "least milliseconds; tools/peers/operators.py times the same calls in PyTorch");
  bench
      .add_option("--vectors", o.vectors,
                  "a folder of reference vectors, whose calls are drawn by --seed and made larger")
      ->needs(flag);
  bench.add_option("--calls", o.calls, "a file of such lines, in place of drawn calls; '-' is standard input")
      ->needs(flag);
  bench.add_option("--backend", o.backend, "'eager' or a backend of compile")->needs(flag)->capture_default_str();
  bench.add_option("--draws", o.draws, "how many operators")->needs(flag)->capture_default_str();
  bench.add_flag("--gradients", o.gradients, "with the gradients that the vectors have")->needs(flag);
  bench.add_option("--milliseconds", o.milliseconds, "a drawn call grows until it takes this long")
      ->needs(flag)
      ->capture_default_str();
}

int sweep(const SweepOptions& o) {
  set_default_device(Device(o.device));
  if (o.calls.empty() && o.vectors.empty()) throw Error("--operators needs --vectors or --calls");
  if (o.calls.empty()) return draw(o);
  std::ifstream file(o.calls);
  std::istream& in = o.calls == "-" ? std::cin : file;
  if (!in) throw Error("cannot read " + o.calls);
  for (std::string line; std::getline(in, line);) print(timed(json::parse(line), o));
  return 0;
}

}  // namespace brasa::tool
