#include <stdlib.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>

#include <brasa/autograd.h>
#include <brasa/error.h>
#include <brasa/stats.h>

#include "sample_call.h"

using namespace brasa;

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

struct Options {
  uint64_t seed = std::random_device()();
  size_t operators = 100;
  bool each = false;
};

// An empty disk cache, which goes when the program ends.
class EmptyCache {
 public:
  EmptyCache() {
    std::string pattern = (fs::temp_directory_path() / "brasa-cold-XXXXXX").string();
    if (!::mkdtemp(pattern.data())) throw Error("cannot make a folder in " + fs::temp_directory_path().string());
    path_ = pattern;
    ::setenv("BRASA_CACHE_DIR", path_.c_str(), 1);
  }
  ~EmptyCache() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }

 private:
  fs::path path_;
};

struct FirstCall {
  std::string op;
  double ms = 0;
  int64_t generated = 0, from_pack = 0;
};

// Of the row's sample; the tensors exist before the clock starts.
FirstCall timed(const ops::Row& row, const ops::Sample& sample) {
  pack::SampleCall call(row, sample.args, pack::tensor_of);
  eager::Operator& op = eager::op(row);
  eager::Results results;
  Stats before = stats();
  Clock::time_point start = Clock::now();
  eager::call(op, call.args(), results);
  double ms = 1e3 * std::chrono::duration<double>(Clock::now() - start).count();
  Stats after = stats();
  return {row.name(), ms, after.kernels_generated - before.kernels_generated,
          after.kernels_from_pack - before.kernels_from_pack};
}

double rounded(double v) { return std::round(v * 1e3) / 1e3; }
double sum(const std::vector<FirstCall>& calls) {
  double total = 0;
  for (const FirstCall& c : calls) total += c.ms;
  return rounded(total);
}
// Of calls in order of their times.
double median(const std::vector<FirstCall>& calls) { return calls.empty() ? 0 : rounded(calls[calls.size() / 2].ms); }

Json measure(const Options& o) {
  std::vector<const ops::Row*> rows;
  for (const ops::Row& row : ops::table().rows())
    if (!row.is_primitive() && !row.samples.empty()) rows.push_back(&row);
  std::mt19937_64 random(o.seed);
  std::shuffle(rows.begin(), rows.end(), random);

  NoGradGuard no_grad;
  std::vector<FirstCall> outside, in_pack;
  Json refused = Json::array();
  int64_t kernels = 0;
  for (auto at = rows.begin(); at != rows.end() && outside.size() < o.operators; ++at) {
    const ops::Row& row = **at;
    try {
      FirstCall c = timed(row, row.samples[random() % row.samples.size()]);
      kernels += c.generated;
      if (c.generated)
        outside.push_back(c);
      else if (c.from_pack)
        in_pack.push_back(c);
    } catch (const Error& e) {
      refused.push_back(row.name() + ": " + e.what());
    }
  }
  double first = outside.empty() ? 0 : rounded(outside[0].ms);
  auto slower = [](const FirstCall& a, const FirstCall& b) { return a.ms > b.ms; };
  std::sort(outside.begin(), outside.end(), slower);
  std::sort(in_pack.begin(), in_pack.end(), slower);
  Json slowest = Json::array();
  for (size_t i = 0; i < outside.size() && (o.each || i < 5); ++i)
    slowest.push_back({{"op", outside[i].op}, {"ms", rounded(outside[i].ms)}, {"kernels", outside[i].generated}});
  return {{"seed", o.seed},
          {"outside", outside.size()},
          {"outside_ms", sum(outside)},
          {"outside_median_ms", median(outside)},
          {"outside_first_ms", first},  // loads LLVM
          {"kernels", kernels},
          {"in_pack", in_pack.size()},
          {"in_pack_ms", sum(in_pack)},
          {"in_pack_median_ms", median(in_pack)},
          {"slowest", slowest},
          {"refused", refused}};
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  CLI::App app("Times the first calls of random operators that are not in the kernel pack, with an empty disk cache");
  app.add_option("--seed", o.seed, "what is drawn; a new one each time if it is not given");
  app.add_option("--operators", o.operators, "how many that are not in the pack")->capture_default_str();
  app.add_flag("--each", o.each, "name all of them, not the five slowest only");
  CLI11_PARSE(app, argc, argv);
  try {
    EmptyCache cache;
    Json line = measure(o);
    std::printf("%s\n", line.dump().c_str());
    return line["outside"] == o.operators ? 0 : 1;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "brasa-cold: %s\n", e.what());
    return 1;
  }
}
