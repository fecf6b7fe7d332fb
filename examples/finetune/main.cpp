// Exports the training step of a vision transformer that knows white digits, so that a C program (finetune.c) teaches it black ones. `--check`
// builds and runs that program, and trains in this process beside it.
#include <brasa/brasa.h>
#include <brasa/compile.h>
#include <brasa/export_program.h>
#include <brasa/nn.h>
#include <brasa/optim.h>
#include <brasa/serialize.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>

#include "models/vit.h"
#include "vit_digits/digits.h"

namespace {

using namespace brasa;
using demo::Digits;
namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr int64_t kBatch = 64;
constexpr int kPretrained = 5, kEpochs = 6;  // epochs; finetune.c has the second one, too

// Both run one graph in float32 on one processor; losses were equal to the last digit. Where the process splits a sum over more threads a
// last place may differ, which a few hundred steps make some thousand times larger.
constexpr double kTolerance = 1e-3;

double milliseconds(Clock::time_point since) {
  return std::chrono::duration<double, std::milli>(Clock::now() - since).count();
}

// The digits in black on white, as finetune.c reads them.
Tensor inverted(const Digits& digits) { return 1 - digits.images(); }

void write(const fs::path& path, const Digits& digits) {
  std::ofstream file(path, std::ios::binary);
  for (const Tensor& t : {inverted(digits), digits.labels()})
    file.write(static_cast<const char*>(t.data_ptr()), t.numel() * static_cast<std::streamsize>(t.element_size()));
  if (!file.flush()) throw std::runtime_error(path.string() + " cannot be written");
}

// A model and the step that trains it, which is compiled here and exported for C.
struct Training {
  models::ViT model{models::vit_of_digits()};
  optim::AdamW optimizer{model->parameters()};

  Tensor step(const Tensor& images, const Tensor& labels, const Tensor& lr) {
    optimizer.param_groups()[0].options().set_lr(lr);
    optimizer.zero_grad();
    Tensor loss = nn::functional::cross_entropy(model(images), labels);
    loss.backward();
    nn::utils::clip_grad_norm_tensor_(model->parameters(), 1.0);
    optimizer.step();
    return loss.detach();
  }

  // The losses; the rate falls to zero.
  std::vector<double> run(const Tensor& images, const Tensor& labels, int epochs, double& step_ms) {
    auto fast = compile([this](const Tensor& x, const Tensor& y, const Tensor& lr) { return step(x, y, lr); },
                        {.fullgraph = true});
    std::vector<double> losses;
    int64_t in_epoch = images.size(0) / kBatch;
    auto steps = static_cast<int>(epochs * in_epoch);
    step_ms = INFINITY;
    for (int k = 0; k < steps; ++k) {
      int64_t at = k % in_epoch * kBatch;
      Tensor lr = scalar_tensor(1e-3f * static_cast<float>(steps - k) / static_cast<float>(steps), kFloat32);
      Clock::time_point start = Clock::now();
      losses.push_back(fast(images.narrow(0, at, kBatch), labels.narrow(0, at, kBatch), lr).item<double>());
      step_ms = std::min(step_ms, milliseconds(start));
    }
    return losses;
  }
};

void write_programs(Training& t, const Digits& train, const Digits& held_out) {
  ExportOptions options;
  options.name = "digits_step";
  options.modules = {{"", t.model.ptr()}};
  options.optimizers = {{"optimizer", &t.optimizer}};
  std::vector<Tensor> batch = {inverted(train).narrow(0, 0, kBatch), train.labels().narrow(0, 0, kBatch),
                               scalar_tensor(1e-3, kFloat32)};
  Clock::time_point start = Clock::now();
  ExportedProgram step =
      export_([&](const Tensor& x, const Tensor& y, const Tensor& lr) { return t.step(x, y, lr); }, batch, options);
  step.write_object("digits_step");
  fmt::print("the step: {:.2f} s, object of {} kB, of which weights {} kB; state {} kB\n", milliseconds(start) / 1e3,
             fs::file_size("digits_step.o") / 1000, step.weight_bytes() / 1000, step.state_bytes() / 1000);
  options.name = "digits_eval";
  options.optimizers.clear();
  t.model->eval();
  export_(t.model, {inverted(held_out)}, options).write_object("digits_eval");
  t.model->train();
  write("train.bin", train);
  write("held_out.bin", held_out);
}

// Builds and runs the C program: what it prints.
std::vector<double> run_in_c(const std::string& source, double& seconds) {
  std::string build = "cc -O2 -Wall -Wextra -I. '" + source + "' digits_step.o digits_eval.o -o finetune";
  if (std::system(build.c_str()) != 0) throw std::runtime_error("finetune.c does not compile");
  Clock::time_point start = Clock::now();
  std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen("./finetune", "r"), ::pclose);
  std::vector<double> losses;
  for (double loss; pipe && std::fscanf(pipe.get(), "%lf", &loss) == 1;) losses.push_back(loss);
  seconds = milliseconds(start) / 1e3;
  return losses;
}

bool agrees(Training& t, const Digits& train, const std::string& source) {
  double step_ms = 0, seconds = 0;
  std::vector<double> alone = run_in_c(source, seconds);
  std::vector<double> here = t.run(inverted(train), train.labels(), kEpochs, step_ms);
  double largest = 0;
  for (size_t i = 0; i < here.size() && i < alone.size(); ++i)
    largest = std::max(largest, std::abs(alone[i] - here[i]) / here[i]);
  fmt::print("{} steps in C, {:.2f} s the whole program; a compiled step here {:.2f} ms\n", alone.size(), seconds,
             step_ms);
  fmt::print("loss {:.4f} to {:.4f}, largest relative difference {:.1e}\n", here.front(), here.back(), largest);
  auto stored = load_tensors("finetuned.safetensors");
  return here.size() == alone.size() && largest < kTolerance && stored.count("optimizer.state.0.exp_avg") == 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::string folder = "finetune", source = std::string(BRASA_SOURCE_DIR) + "/finetune.c",
              path = std::string(BRASA_SOURCE_DIR) + "/../vit_digits/digits.csv.gz";
  bool check = false;
  CLI::App app{"Exports the training step of the digits' vision transformer, for examples/finetune/finetune.c."};
  app.add_option("folder", folder, "where the objects and the digits are written")->capture_default_str();
  app.add_option("--data", path, "the digits, a gzipped CSV file")->capture_default_str();
  app.add_flag("--check", check, "build and run the C program, and train here with the same numbers");
  CLI11_PARSE(app, argc, argv);
  try {
    Digits train(path, Digits::Part::Train), held_out(path, Digits::Part::HeldOut);
    fs::create_directories(folder);
    fs::current_path(folder);
    manual_seed(7);
    Training t;
    double step_ms = 0;
    std::vector<double> losses = t.run(train.images(), train.labels(), kPretrained, step_ms);
    fmt::print("white digits: loss {:.4f} to {:.4f}\n", losses.front(), losses.back());
    write_programs(t, train, held_out);
    return !check || agrees(t, train, source) ? 0 : 1;
  } catch (const std::exception& e) {
    fmt::print(stderr, "example-finetune: {}\n", e.what());
    return 1;
  }
}
