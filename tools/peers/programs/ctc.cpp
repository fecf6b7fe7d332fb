// Speech recognition by connectionist temporal classification (Graves et al. 2006): two bidirectional LSTM layers, batches whose lengths differ.
#include "program.h"

namespace nn = torch::nn;

struct RecognizerImpl : nn::Module {
  RecognizerImpl(int64_t features, int64_t width, int64_t letters)
      : lstm(nn::LSTMOptions(features, width).num_layers(2).bidirectional(true)), out(2 * width, letters) {
    register_module("lstm", lstm);
    register_module("out", out);
  }
  Tensor forward(const Tensor& x) { return torch::log_softmax(out(std::get<0>(lstm(x))), -1); }
  nn::LSTM lstm;
  nn::Linear out;
};
TORCH_MODULE(Recognizer);

int main(int argc, char** argv) {
  const int64_t batch = 8, features = 40, letters = 29;
  Recognizer net(features, 96, letters);
  init_weights(*net);
  nn::CTCLoss ctc(nn::CTCLossOptions().blank(0).zero_infinity(true));
  torch::optim::Adam optimizer(net->parameters(), torch::optim::AdamOptions(1e-3));
  Tensor x, targets, input_lengths, target_lengths;

  auto next = [&](int64_t call) {
    int64_t steps = 80 + 7 * (call % 5), longest = 12 + call % 5;
    x = waves({steps, batch, features}, call % 5);
    targets = (waves({batch, longest}, call % 5).abs() * 27.9).to(torch::kLong) + 1;
    input_lengths = steps - torch::arange(batch, torch::kLong);
    target_lengths = longest - torch::arange(batch, torch::kLong).remainder(4);
  };
  auto step = [&] {
    optimizer.zero_grad();
    Tensor loss = ctc(net(x), targets, input_lengths, target_lengths);
    loss.backward();
    torch::nn::utils::clip_grad_norm_(net->parameters(), 5.0);
    optimizer.step();
    return loss.detach();
  };
  return run({.name = "ctc", .step = step, .next = next}, argc, argv);
}
