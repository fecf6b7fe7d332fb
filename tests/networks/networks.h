#pragma once

#include <brasa/nn.h>
#include <brasa/tensor.h>

#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace brasa::test {

/// Draws the same numbers with every standard library.
class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  int64_t in(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(engine_() % static_cast<uint32_t>(high - low + 1));
  }
  bool one_of(int64_t n) { return in(1, n) == 1; }
  template <class T>
  T of(std::initializer_list<T> list) {
    return list.begin()[in(0, static_cast<int64_t>(list.size()) - 1)];
  }

 private:
  std::mt19937 engine_;
};

/// Sizes that change from call to call.
struct Extent {
  int64_t batch, length, width;
};
struct Batch {
  std::vector<Tensor> inputs;
  Tensor target;
};
using Layer = std::function<Tensor(const Tensor&)>;

/// A network that was drawn: what it is made of, and how it is used.
struct Network {
  struct Parts : nn::Module {
    template <class M>
    M add(M module) {
      return register_module(std::to_string(children().size()), std::move(module));
    }
  };
  std::shared_ptr<Parts> parts = std::make_shared<Parts>();
  std::string text;  // what was drawn
  Extent least{}, most{};
  std::function<Tensor(const std::vector<Tensor>& inputs)> forward;
  std::function<Tensor(const Tensor& output, const Tensor& target)> loss;
  std::function<Batch(const Extent& extent)> batch;
};

struct Family {
  const char* name;
  void (*draw)(Random& random, Network& out);
};
/// Convolutions: with pools and residuals, depthwise, with joins of a decoder, along time.
std::vector<Family> convolutional();
/// Causal and masked attention, recurrent layers, rows of features.
std::vector<Family> sequential();

// What both kinds draw; each appends what it drew to the network's text.
Layer drawn_activation(Random& random, Network& out);
/// Of classes: integers for each row, or for each place where the output has more than two dimensions.
void draw_class_loss(Random& random, Network& out);

}  // namespace brasa::test
