// captioner_encoder as a class. A program for each thread, which is neither copied nor moved.
#pragma once

#include <array>
#include <stdexcept>
#include <utility>
#include <vector>

#include "captioner_encoder.h"

namespace captioner_encoder {

class Program {
 public:
  using Tensor = captioner_encoder_tensor;

  // `weights_file`: where the weights lie beside the program.
  explicit Program(const char* weights_file = nullptr) : Program(Closed{}) {
    check(captioner_encoder_open(&context_, weights_file));
    context_.state = state_.at_least(*this, captioner_encoder_state_bytes());
    check(captioner_encoder_reset(&context_));
  }
  ~Program() {
    captioner_encoder_close(&context_);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // Fills sizes and bytes of the outputs.
  std::array<Tensor, CAPTIONER_ENCODER_OUTPUTS> sizes(const std::array<Tensor, CAPTIONER_ENCODER_INPUTS>& inputs) {
    std::array<Tensor, CAPTIONER_ENCODER_OUTPUTS> outputs{};
    check(captioner_encoder_sizes(&context_, inputs.data(), outputs.data()));
    return outputs;
  }
  // std::runtime_error with the message. Work memory grows here, where sizes do.
  void run(const std::array<Tensor, CAPTIONER_ENCODER_INPUTS>& inputs, std::array<Tensor, CAPTIONER_ENCODER_OUTPUTS>& outputs) {
    std::size_t bytes = 0;
    check(captioner_encoder_memory(&context_, inputs.data(), &bytes));
    context_.memory = memory_.at_least(*this, bytes);
    context_.memory_bytes = memory_.bytes;
    check(captioner_encoder_run(&context_, inputs.data(), outputs.data()));
  }
  // The state as a safetensors file.
  void save(const char* file) { check(captioner_encoder_save(&context_, file)); }
  void load(const char* file) { check(captioner_encoder_load(&context_, file)); }
  // For what else the C functions take.
  captioner_encoder_context& context() { return context_; }

 private:
  // Whose destructor closes it, whatever the other constructor meets.
  struct Closed {};
  explicit Program(Closed) {}
  void check(captioner_encoder_status status) {
    if (status != CAPTIONER_ENCODER_OK) throw std::runtime_error(context_.message);
  }
  struct Memory {
    void* at_least(Program&, std::size_t n) {
      if (bytes < n) data.resize(n);
      bytes = data.size();
      return data.data();
    }
    std::vector<char> data;
    std::size_t bytes = 0;
  };
  captioner_encoder_context context_{};
  Memory memory_, state_;
};

}  // namespace captioner_encoder
