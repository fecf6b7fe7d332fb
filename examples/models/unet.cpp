#include "unet.h"

#include <string>

#include <brasa/brasa.h>

namespace models {

using namespace brasa;

namespace {

// Two 3 x 3 convolutions, each with batch norm and relu.
nn::Sequential convolutions(int64_t in, int64_t out) {
  nn::Sequential layers;
  for (int64_t channels : {in, out}) {
    layers->push_back(nn::Conv2d(nn::Conv2dOptions(channels, out, 3).padding(1).bias(false)));
    layers->push_back(nn::BatchNorm2d(out));
    layers->push_back(nn::ReLU());
  }
  return layers;
}

}  // namespace

UNetImpl::UNetImpl(const UNetOptions& o) {
  first = register_module("first", convolutions(o.channels, o.width));
  for (int64_t i = 0; i < o.depth; ++i) {
    int64_t fine = o.width << i, coarse = 2 * fine;
    std::string n = std::to_string(i);
    down.push_back(register_module("down" + n, convolutions(fine, coarse)));
    up.push_back(register_module("up" + n, nn::ConvTranspose2d(nn::ConvTranspose2dOptions(coarse, fine, 2).stride(2))));
    merge.push_back(register_module("merge" + n, convolutions(coarse, fine)));
  }
  last = register_module("last", nn::Conv2d(nn::Conv2dOptions(o.width, o.classes, 1)));
}

Tensor UNetImpl::forward(const Tensor& images) {
  Tensor x = first->forward(images);
  std::vector<Tensor> skips;
  for (nn::Sequential& layer : down) {
    skips.push_back(x);
    x = layer->forward(max_pool2d(x, {2, 2}));
  }
  for (size_t i = down.size(); i-- > 0;) x = merge[i]->forward(cat({skips[i], up[i](x)}, 1));
  return last(x);
}

}  // namespace models
