// Captions a photograph: an encoder and a decoder's step, exported from transformers (export.py), run eagerly, compiled, and as a program that needs
// nothing (captioner.cpp), with greedy and beam search.
#include <brasa/brasa.h>
#include <brasa/compile.h>
#include <brasa/data/images.h>
#include <brasa/export_program.h>
#include <brasa/image.h>
#include <brasa/import.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "search.h"

namespace {

using namespace brasa;
using captioning::Tokens;
namespace fs = std::filesystem;
namespace transforms = data::transforms;
using Program = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

// captioner.json: how the model wants its images, its tokens, and for some photographs the captions of PyTorch's model.
struct Card {
  std::vector<double> mean, std;
  captioning::Limits limits;
  nlohmann::json captions;
};
Card read_card(const fs::path& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(path.string() + " cannot be read");
  auto j = nlohmann::json::parse(file);
  return {j.at("mean"), j.at("std"), {j.at("start"), j.at("end"), j.at("tokens")}, j.at("captions")};
}

// A tokenizer's decode belongs here; until there is one, a caption is shown as its tokens.
std::string text_of(const Tokens& tokens) { return fmt::format("{}", fmt::join(tokens, " ")); }

std::vector<int64_t> example_sizes(const io::ProgramInput& input) {
  std::vector<int64_t> out;
  for (const auto& size : input.sizes) out.push_back(size.example);
  return out;
}

// The photograph as the encoder takes it: [1, 3, height, width].
Tensor prepared(const std::string& path, const io::ExportedModule& encoder, const Card& card) {
  std::vector<int64_t> sizes = example_sizes(encoder->input_types().at(0));
  Tensor x = io::read_image(path, {.mode = io::ImageReadMode::Rgb, .apply_exif_orientation = true});
  x = transforms::resize(x, {sizes[2], sizes[3]});
  return transforms::normalize(x.to(kFloat32) / 255, card.mean, card.std).unsqueeze(0);
}

// Sizes of the cache of one sequence, which begins as zeros.
std::vector<int64_t> cache_sizes(const io::ExportedModule& step) {
  std::vector<int64_t> sizes = example_sizes(step->input_types().at(2));
  return {sizes.begin() + 1, sizes.end()};
}

class Captioner : public captioning::Decoder {
 public:
  Captioner(Program encoder, Program step, std::vector<int64_t> cache)
      : encoder_(std::move(encoder)), step_(std::move(step)), sizes_(std::move(cache)) {
    sizes_.insert(sizes_.begin(), 1);
  }

  void look_at(const Tensor& image) { memory_ = encoder_({image}); }

  const float* step(int64_t position, const Tokens& parents, const Tokens& tokens) override {
    cache_ = position == 0 ? zeros(sizes_) : cache_.index_select(0, tensor(parents));
    std::vector<Tensor> inputs = {tensor(tokens), scalar_tensor(position, kInt64), cache_};
    inputs.insert(inputs.end(), memory_.begin(), memory_.end());
    std::vector<Tensor> out = step_(inputs);
    logits_ = out.at(0).to(kFloat32).cpu().contiguous();
    cache_ = out.at(1);
    return static_cast<const float*>(logits_.data_ptr());
  }
  int64_t vocabulary() const override { return logits_.size(1); }

 private:
  Program encoder_, step_;
  std::vector<int64_t> sizes_;
  std::vector<Tensor> memory_;
  Tensor cache_, logits_;
};

struct Result {
  Tokens tokens;
  double milliseconds = INFINITY;  // encoder and search, the fastest run
};

Result run_here(Captioner& captioner, const Tensor& image, const captioning::Limits& limits, size_t beams,
                int repeats) {
  Result r;
  for (int i = 0; i < repeats; ++i) {
    auto begin = std::chrono::steady_clock::now();
    captioner.look_at(image);
    r.tokens = captioning::caption(captioner, limits, beams);
    std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    r.milliseconds = std::min(r.milliseconds, took.count());
  }
  return r;
}

// The two programs as objects, linked with captioner.cpp: `captioner` in the folder.
void build_alone(const io::ExportedModule& encoder, const io::ExportedModule& step, const fs::path& folder) {
  fs::create_directories(folder);
  for (const auto& [program, name] : {std::pair{encoder, "captioner_encoder"}, std::pair{step, "captioner_step"}}) {
    ExportOptions options;
    options.name = name;
    export_(program, options).write_object((folder / name).string());
  }
  std::string command = fmt::format(
      "cd '{0}' && c++ -std=c++20 -O2 -Wall -Wextra -I. '{1}/captioner.cpp' captioner_encoder.o captioner_step.o -o captioner",
      folder.string(), BRASA_SOURCE_DIR);
  if (std::system(command.c_str()) != 0) throw std::runtime_error("captioner.cpp does not compile");
  fmt::print("captioner: {} kB, weights inside\n", fs::file_size(folder / "captioner") / 1000);
}

Result run_alone(const fs::path& folder, const Tensor& image, const std::vector<int64_t>& cache,
                 const captioning::Limits& limits, size_t beams, int repeats) {
  fs::path input = folder / "image.bin";
  Tensor x = image.contiguous();
  std::ofstream(input, std::ios::binary)
      .write(static_cast<const char*>(x.data_ptr()), static_cast<std::streamsize>(x.nbytes()));
  std::string command =
      fmt::format("'{}' '{}' {} {} {} {} {} {} {} {} {}", (folder / "captioner").string(), input.string(), x.size(1),
                  x.size(2), x.size(3), beams, limits.start, limits.end, limits.most, repeats, fmt::join(cache, " "));
  std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  std::string output;
  for (char part[256]; pipe && std::fgets(part, sizeof part, pipe.get());) output += part;
  size_t line = output.find('\n');
  if (line == output.npos) throw std::runtime_error("the program alone failed");
  Result r;
  r.milliseconds = std::stod(output.substr(line));
  for (char *at = output.data(), *end; at < output.data() + line - 1; at = end)
    r.tokens.push_back(std::strtoll(at, &end, 10));
  return r;
}

}  // namespace

int main(int argc, char** argv) {
  std::string here = BRASA_SOURCE_DIR, photograph = here + "/flower.jpg", folder = here + "/small", encoder_path,
              step_path, card_path, work = "captioning";
  size_t beams = 4;
  int repeats = 10;
  bool check = false;
  CLI::App app{"Captions a photograph with an encoder and a decoder that examples/captioning/export.py wrote."};
  app.add_option("photograph", photograph, "a JPEG or PNG file")->capture_default_str();
  app.add_option("--model", folder, "a folder with encoder.pt2, step.pt2 and captioner.json")->capture_default_str();
  app.add_option("--encoder", encoder_path, "another archive than the folder's");
  app.add_option("--step", step_path, "likewise");
  app.add_option("--card", card_path, "another file than the folder's captioner.json");
  app.add_option("--beams", beams, "of the beam search")->capture_default_str()->check(CLI::PositiveNumber);
  app.add_option("--repeats", repeats, "of which the fastest counts")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--work", work, "where the program that runs alone is built")->capture_default_str();
  app.add_flag("--check", check, "fail unless all captions are those of captioner.json");
  CLI11_PARSE(app, argc, argv);
  auto in_folder = [&](const std::string& given, const char* name) {
    return given.empty() ? (fs::path(folder) / name).string() : given;
  };
  try {
    NoGradGuard no_grad;
    Card card = read_card(in_folder(card_path, "captioner.json"));
    auto encoder = io::load_pt2(in_folder(encoder_path, "encoder.pt2")),
         step = io::load_pt2(in_folder(step_path, "step.pt2"));
    Tensor image = prepared(photograph, encoder, card);
    std::vector<int64_t> cache = cache_sizes(step);

    auto eagerly = [](io::ExportedModule m) {
      return Program([m](const std::vector<Tensor>& x) mutable { return m->forward(x); });
    };
    auto compiled = [&](const io::ExportedModule& m) {
      return Program(compile(eagerly(m), {.fullgraph = true, .pure = true}));
    };
    Captioner eager(eagerly(encoder), eagerly(step), cache), fast(compiled(encoder), compiled(step), cache);
    build_alone(encoder, step, work);

    std::string name = fs::path(photograph).filename().string();
    nlohmann::json known = card.captions.value(name, nlohmann::json::object());
    bool right = true;
    for (size_t n : {size_t{1}, beams}) {
      Tokens expected = known.value(std::to_string(n), Tokens());
      auto report = [&](const char* way, const Result& r) {
        const char* verdict = expected.empty() ? "" : r.tokens == expected ? ", as PyTorch" : ", PyTorch has others";
        fmt::print("{:<9} {} beam{}: {:8.3f} ms  {}{}\n", way, n, n == 1 ? " " : "s", r.milliseconds, text_of(r.tokens),
                   verdict);
        right = right && r.tokens == expected;
      };
      report("eager", run_here(eager, image, card.limits, n, repeats));
      report("compiled", run_here(fast, image, card.limits, n, repeats));
      report("alone", run_alone(work, image, cache, card.limits, n, repeats));
    }
    return !check || right ? 0 : 1;
  } catch (const std::exception& e) {
    fmt::print(stderr, "example-captioning: {}\n", e.what());
    return 1;
  }
}
