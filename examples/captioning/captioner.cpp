// A captioner that needs neither Brasa nor a model's file: c++ -std=c++20 captioner.cpp captioner_encoder.o captioner_step.o. It reads an image as
// example-captioning prepares it and prints the tokens of its caption, then the time of the fastest run in milliseconds.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "captioner_encoder.hpp"
#include "captioner_step.hpp"
#include "search.h"

namespace {

using captioning::Tokens;

// The encoder's results are the step's inputs behind tokens, position and cache.
constexpr size_t kOwn = 3;
static_assert(CAPTIONER_STEP_INPUTS == kOwn + CAPTIONER_ENCODER_OUTPUTS);
static_assert(CAPTIONER_STEP_OUTPUTS == 2, "logits and cache");

size_t elements(const int64_t* sizes, int32_t rank) {
  size_t n = 1;
  for (int32_t d = 0; d < rank; ++d) n *= static_cast<size_t>(sizes[d]);
  return n;
}

class Captioner : public captioning::Decoder {
 public:
  void look_at(std::vector<float>& image, const int64_t (&sizes)[4]) {
    captioner_encoder_tensor in{image.data(), image.size() * sizeof(float), {}};
    std::copy(sizes, sizes + 4, in.sizes);
    auto out = encoder_.sizes({in});
    for (size_t i = 0; i < out.size(); ++i) {
      memory_[i].resize(out[i].bytes);
      out[i].data = memory_[i].data();
      captioner_step_tensor& to = inputs_[kOwn + i];
      to = {out[i].data, out[i].bytes, {}};
      std::copy(out[i].sizes, out[i].sizes + 8, to.sizes);
    }
    encoder_.run({in}, out);
  }

  // The cache of one row, [layers, heads, tokens, features].
  void set_cache(const std::vector<int64_t>& sizes) {
    std::copy(sizes.begin(), sizes.end(), inputs_[2].sizes + 1);
    row_ = elements(sizes.data(), static_cast<int32_t>(sizes.size()));
  }

  const float* step(int64_t position, const Tokens& parents, const Tokens& tokens) override {
    auto rows = static_cast<int64_t>(tokens.size());
    seen_.resize(row_ * tokens.size());
    for (size_t i = 0; i < tokens.size(); ++i) {
      float* to = seen_.data() + i * row_;
      if (position == 0)
        std::fill(to, to + row_, 0.0f);
      else
        std::memcpy(to, cache_.data() + static_cast<size_t>(parents[i]) * row_, row_ * sizeof(float));
    }
    Tokens given = tokens;
    inputs_[0] = {given.data(), given.size() * sizeof(int64_t), {rows}};
    inputs_[1] = {&position, sizeof position, {}};
    inputs_[2].data = seen_.data();
    inputs_[2].bytes = seen_.size() * sizeof(float);
    inputs_[2].sizes[0] = rows;
    auto out = step_.sizes(inputs_);
    logits_.resize(out[0].bytes / sizeof(float));
    cache_.resize(out[1].bytes / sizeof(float));
    out[0].data = logits_.data();
    out[1].data = cache_.data();
    step_.run(inputs_, out);
    vocabulary_ = out[0].sizes[1];
    return logits_.data();
  }
  int64_t vocabulary() const override { return vocabulary_; }

 private:
  captioner_encoder::Program encoder_;
  captioner_step::Program step_;
  std::array<std::vector<char>, CAPTIONER_ENCODER_OUTPUTS> memory_;
  std::array<captioner_step_tensor, CAPTIONER_STEP_INPUTS> inputs_{};
  std::vector<float> seen_, cache_, logits_;
  size_t row_ = 0;
  int64_t vocabulary_ = 0;
};

}  // namespace

// captioner IMAGE CHANNELS HEIGHT WIDTH BEAMS START END TOKENS REPEATS CACHE-SIZE…
int main(int argc, char** argv) {
  constexpr int kFixed = 10;
  if (argc <= kFixed) return std::fprintf(stderr, "example-captioning says how this is called\n"), 2;
  try {
    auto number = [&](int i) { return std::strtoll(argv[i], nullptr, 10); };
    const int64_t sizes[4] = {1, number(2), number(3), number(4)};
    std::vector<float> image(elements(sizes, 4));
    std::FILE* file = std::fopen(argv[1], "rb");
    if (!file || std::fread(image.data(), sizeof(float), image.size(), file) != image.size())
      throw std::runtime_error(std::string(argv[1]) + " is not an image of this size");
    std::fclose(file);

    Captioner captioner;
    std::vector<int64_t> cache;
    for (int i = kFixed; i < argc; ++i) cache.push_back(number(i));
    captioner.set_cache(cache);
    Tokens tokens;
    double fastest = INFINITY;
    for (int64_t run = 0; run < number(9); ++run) {
      auto begin = std::chrono::steady_clock::now();
      captioner.look_at(image, sizes);
      tokens = captioning::caption(captioner, {number(6), number(7), number(8)}, static_cast<size_t>(number(5)));
      std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
      fastest = std::min(fastest, took.count());
    }
    for (int64_t t : tokens) std::printf("%lld ", static_cast<long long>(t));
    std::printf("\n%f\n", fastest);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
