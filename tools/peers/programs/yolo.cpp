// The head of a one-stage detector (Redmon & Farhadi 2018) on features of three scales: boxes are decoded, the loss is taken by a
// mask of assigned cells, and the best boxes suppress those that they overlap.
#include "program.h"

namespace nn = torch::nn;

const int64_t kAnchors = 3, kClasses = 20, kOutputs = 5 + kClasses;

struct ScaleImpl : nn::Module {
  ScaleImpl(int64_t channels, int64_t stride_) : stride(stride_) {
    net = register_module(
        "net", nn::Sequential(nn::Conv2d(nn::Conv2dOptions(channels, channels / 2, 1).bias(false)),
                              nn::BatchNorm2d(channels / 2), nn::LeakyReLU(nn::LeakyReLUOptions().negative_slope(0.1)),
                              nn::Conv2d(nn::Conv2dOptions(channels / 2, channels, 3).padding(1).bias(false)),
                              nn::BatchNorm2d(channels), nn::LeakyReLU(nn::LeakyReLUOptions().negative_slope(0.1)),
                              nn::Conv2d(nn::Conv2dOptions(channels, kAnchors * kOutputs, 1))));
    anchors =
        register_buffer("anchors", stride * torch::tensor({1.0f, 1.5f, 2.0f, 1.0f, 2.5f, 2.5f}).view({1, 3, 1, 1, 2}));
  }

  // [batch, anchors · height · width, 5 + classes]: centre and size in pixels, logits of being an object and of the classes.
  Tensor forward(const Tensor& features) {
    int64_t batch = features.size(0), height = features.size(2), width = features.size(3);
    Tensor out = net->forward(features).view({batch, kAnchors, kOutputs, height, width}).permute({0, 1, 3, 4, 2});
    auto places = torch::meshgrid({torch::arange(height), torch::arange(width)}, "ij");
    Tensor grid = torch::stack({places[1], places[0]}, -1).view({1, 1, height, width, 2}).to(out.dtype());
    Tensor centre = (torch::sigmoid(out.slice(-1, 0, 2)) * 2 - 0.5 + grid) * stride;
    Tensor size = (torch::sigmoid(out.slice(-1, 2, 4)) * 2).pow(2) * anchors;
    return torch::cat({centre, size, out.slice(-1, 4)}, -1).reshape({batch, -1, kOutputs});
  }

  int64_t stride;
  nn::Sequential net{nullptr};
  Tensor anchors;
};
TORCH_MODULE(Scale);

// Intersection over union of boxes by centre and size; they broadcast.
Tensor iou(const Tensor& a, const Tensor& b) {
  auto low = [](const Tensor& box) { return box.slice(-1, 0, 2) - box.slice(-1, 2, 4) / 2; };
  auto high = [](const Tensor& box) { return box.slice(-1, 0, 2) + box.slice(-1, 2, 4) / 2; };
  Tensor shared = (torch::min(high(a), high(b)) - torch::max(low(a), low(b))).clamp_min(0).prod(-1);
  return shared / (a.slice(-1, 2, 4).prod(-1) + b.slice(-1, 2, 4).prod(-1) - shared + 1e-7);
}

int main(int argc, char** argv) {
  const int64_t batch = 4;
  nn::ModuleList scales(Scale(64, 8), Scale(128, 16), Scale(256, 32));
  init_weights(*scales);
  torch::optim::SGD optimizer(scales->parameters(), torch::optim::SGDOptions(1e-3).momentum(0.9).nesterov(true));
  std::vector<Tensor> features = {waves({batch, 64, 32, 32}), waves({batch, 128, 16, 16}, 1),
                                  waves({batch, 256, 8, 8}, 2)};
  const int64_t cells = kAnchors * (32 * 32 + 16 * 16 + 8 * 8);
  Tensor assigned = waves({batch, cells}, 3) > 0.99;
  Tensor truth = torch::cat({waves({batch, cells, 2}, 4) * 100 + 128, waves({batch, cells, 2}, 5) * 20 + 40}, -1);
  Tensor classes = (waves({batch, cells}, 6).abs() * 19.99).to(torch::kLong);

  auto step = [&] {
    optimizer.zero_grad();
    std::vector<Tensor> parts;
    for (size_t i = 0; i < features.size(); ++i) parts.push_back(scales->at<ScaleImpl>(i).forward(features[i]));
    Tensor out = torch::cat(parts, 1), boxes = out.slice(-1, 0, 4), object = out.select(-1, 4);
    Tensor overlap = iou(boxes, truth), mask = assigned.to(out.dtype()), count = mask.sum();
    Tensor wanted = overlap.detach().clamp_min(0) * mask;
    Tensor labels = torch::one_hot(classes, kClasses).to(out.dtype());
    Tensor class_loss = torch::binary_cross_entropy_with_logits(out.slice(-1, 5), labels, {}, {}, at::Reduction::None);
    Tensor loss = 5 * ((1 - overlap) * mask).sum() / count +
                  torch::binary_cross_entropy_with_logits(object, wanted) * 20 +
                  (class_loss.mean(-1) * mask).sum() / count;
    loss.backward();
    optimizer.step();

    torch::NoGradGuard no_grad;
    auto [scores, order] = torch::sigmoid(object).topk(100, 1);
    Tensor best = boxes.gather(1, order.unsqueeze(-1).expand({-1, -1, 4}));
    Tensor overlaps = iou(best.unsqueeze(2), best.unsqueeze(1)).triu(1);
    Tensor kept = scores * (overlaps.amax(1) < 0.5).to(scores.dtype());
    return loss.detach() + kept.sum() / 1e4;
  };
  return run({.name = "yolo", .step = step}, argc, argv);
}
