// Trains a small vision transformer on handwritten digits, eager and compiled, from the same seed, and shows what compiling changes.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "plot.h"
#include "terminal.h"
#include "train.h"

namespace demo {
namespace {

namespace fs = std::filesystem;

struct Options {
  Settings settings;
  std::string data = std::string(BRASA_SOURCE_DIR) + "/digits.csv.gz";
  std::string out = "out/loss.png";
  bool explain = false, json = false, first_step_only = false;
};

// A cache of this run's own, so that "first compiled step" means one that really compiles.
class FreshCache {
 public:
  FreshCache() {
    std::string pattern = (fs::temp_directory_path() / "brasa-demo-XXXXXX").string();
    if (!::mkdtemp(pattern.data()))
      throw std::runtime_error("cannot make a folder in " + fs::temp_directory_path().string());
    path_ = pattern;
    ::setenv("BRASA_CACHE_DIR", path_.c_str(), 1);
  }
  ~FreshCache() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  FreshCache(const FreshCache&) = delete;
  FreshCache& operator=(const FreshCache&) = delete;

 private:
  fs::path path_;
};

// Seconds of the first compiled step in a new process, which finds this one's kernels in the disk cache.
double warm_first_step(const Options& o) {
  std::string command = fmt::format("'{}' --first-step --data '{}' --batch-size {} --backend {} --workers {}",
                                    fs::read_symlink("/proc/self/exe").string(), o.data, o.settings.batch_size,
                                    o.settings.backend, o.settings.workers);
  std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  double seconds = NAN;
  if (!pipe || std::fscanf(pipe.get(), "%lf", &seconds) != 1)
    throw std::runtime_error("the second process for the warm start failed");
  return seconds;
}

// The largest |compiled - eager| / eager over the steps.
std::vector<double> differences(const Result& eager, const Result& compiled) {
  std::vector<double> out;
  for (size_t i = 0; i < eager.losses.size(); ++i)
    out.push_back(std::abs(compiled.losses[i] - eager.losses[i]) / std::abs(eager.losses[i]));
  return out;
}

void plot(const Result& eager, const Result& compiled, const Options& o, double speedup) {
  Figure figure;
  figure.title = "Training loss, eager and compiled";
  figure.subtitle = fmt::format(
      "ViT with {} parameters, 1,437 digits of 8 × 8, batch {}, Adam. The compiled step takes {:.2f} ms instead of {:.2f} ms: {:.1f}×.",
      with_commas(eager.parameters), o.settings.batch_size, compiled.median_ms(), eager.median_ms(), speedup);
  figure.x_label = "training step";
  figure.panels = {
      {"cross-entropy",
       {{"eager", eager.losses, {0.98, 0.65, 0.25}, 6}, {"compiled", compiled.losses, {0.12, 0.25, 0.55}, 1.8}},
       2.6},
      {"relative difference", {{"difference", differences(eager, compiled), {0.35, 0.55, 0.4}, 1.6}}, 1}};
  if (fs::path folder = fs::path(o.out).parent_path(); !folder.empty()) fs::create_directories(folder);
  write_png(figure, o.out);
}

int run(const Options& o) {
  // Before the first tensor: the library looks for its cache once.
  std::optional<FreshCache> cache;
  if (!o.first_step_only) cache.emplace();
  Digits digits(o.data, Digits::Part::Train), held_out(o.data, Digits::Part::HeldOut);
  if (o.first_step_only) {
    fmt::print("{}\n", train(digits, held_out, true, o.settings, [](const Progress&) {}, 1).first_s);
    return 0;
  }
  auto one = [&](const char* name, bool compiled) {
    ProgressBar bar(name, o.json);
    Result r = train(digits, held_out, compiled, o.settings, [&](const Progress& p) { bar.show(p); });
    bar.done();
    return r;
  };
  if (!o.json)
    fmt::print("A vision transformer learns {} handwritten digits; {} are held out.\n\n",
               with_commas(static_cast<int64_t>(*digits.size())), *held_out.size());
  Result eager = one("eager", false), compiled = one("compiled", true);
  double warm_first_s = warm_first_step(o);
  double speedup = eager.median_ms() / compiled.median_ms();
  double difference = 0;
  for (double d : differences(eager, compiled)) difference = std::max(difference, d);
  plot(eager, compiled, o, speedup);

  if (o.json) {
    fmt::print("{}\n", nlohmann::ordered_json{{"eager_ms", eager.median_ms()},
                                              {"compiled_ms", compiled.median_ms()},
                                              {"speedup", speedup},
                                              {"first_s", compiled.first_s},
                                              {"warm_first_s", warm_first_s},
                                              {"eager_accuracy", eager.accuracy},
                                              {"compiled_accuracy", compiled.accuracy},
                                              {"max_loss_difference", difference}}
                           .dump());
    return 0;
  }
  auto percent = [](double v) { return fmt::format("{:.2f} %", 100 * v); };
  auto ms = [](double v) { return fmt::format("{:.2f} ms", v); };
  auto s = [](double v) { return fmt::format("{:.2f} s", v); };
  fmt::print("\n{}", table({{"", "eager", "compiled"},
                            {"one training step (median)", ms(eager.median_ms()), ms(compiled.median_ms())},
                            {"speed-up", "", fmt::format("{:.2f}×", speedup)},
                            {"first step", s(eager.first_s), s(compiled.first_s)},
                            {"first step, warm disk cache", "", s(warm_first_s)},
                            {"loss at the end", fmt::format("{:.4f}", eager.losses.back()),
                             fmt::format("{:.4f}", compiled.losses.back())},
                            {"held-out accuracy", percent(eager.accuracy), percent(compiled.accuracy)},
                            {"largest relative difference of the losses", "", fmt::format("{:.1e}", difference)}}));
  fmt::print("\n  {} parameters, {} steps of {} images. Both loss curves: {}\n", with_commas(eager.parameters),
             eager.losses.size(), o.settings.batch_size, o.out);
  if (o.explain)
    fmt::print("\n{}", compiled.explanation.str(true));
  else
    fmt::print("  brasa-demo --explain shows what the compiler made of the step.\n");
  return 0;
}

}  // namespace
}  // namespace demo

int main(int argc, char** argv) {
  demo::Options o;
  CLI::App app{
      "Trains a small vision transformer on handwritten digits, eager and with brasa::compile, from the same seed."};
  app.footer(
      "Examples:\n  brasa-demo                  train, compare, write out/loss.png\n"
      "  brasa-demo --explain        and show graphs, kernels and bytes before and after fusion\n"
      "  brasa-demo --json           one line of JSON");
  app.add_flag("--explain", o.explain, "show what the compiler did with the step");
  app.add_flag("--json", o.json, "print one line of JSON and nothing else");
  app.add_option("--epochs", o.settings.epochs, "passes over the training digits")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--batch-size", o.settings.batch_size, "images in a step")
      ->check(CLI::Range(1, 1437))
      ->capture_default_str();
  app.add_option("--lr", o.settings.lr, "Adam's learning rate")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--workers", o.settings.workers, "threads that load data")
      ->check(CLI::Range(0, 64))
      ->capture_default_str();
  app.add_option("--seed", o.settings.seed, "of weights, order of the digits and dropout")->capture_default_str();
  app.add_option("--backend", o.settings.backend, "of brasa::compile: inductor, aot_eager, ...")->capture_default_str();
  app.add_option("--device", o.settings.device, "where the model lives: cpu, cuda, emu (a GPU that is not there)")
      ->capture_default_str();
  app.add_option("--data", o.data, "the digits, a gzipped CSV file")->capture_default_str();
  app.add_option("--out", o.out, "the plot")->capture_default_str();
  app.add_flag("--first-step", o.first_step_only, "only print the seconds of the first compiled step")->group("");
  CLI11_PARSE(app, argc, argv);
  try {
    return demo::run(o);
  } catch (const std::exception& e) {
    fmt::print(stderr, "brasa-demo: {}\n", e.what());
    return 1;
  }
}
