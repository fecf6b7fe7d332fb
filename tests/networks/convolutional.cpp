// Networks of convolutions over images and signals of any size.
#include <brasa/brasa.h>

#include "networks.h"

namespace brasa::test {

namespace F = nn::functional;

Layer drawn_activation(Random& random, Network& out) {
  switch (random.in(0, 4)) {
    case 0: out.text += " relu"; return [](const Tensor& x) { return x.relu(); };
    case 1: out.text += " gelu"; return [](const Tensor& x) { return gelu(x); };
    case 2: out.text += " silu"; return [](const Tensor& x) { return silu(x); };
    case 3: out.text += " leaky_relu"; return [](const Tensor& x) { return leaky_relu(x, 0.1); };
    default: out.text += " hardswish"; return [](const Tensor& x) { return hardswish(x); };
  }
}

void draw_class_loss(Random& random, Network& out) {
  switch (random.in(0, 2)) {
    case 0:
      out.text += " cross_entropy";
      out.loss = [](const Tensor& y, const Tensor& t) { return F::cross_entropy(y, t); };
      return;
    case 1:
      out.text += " smoothed_cross_entropy";
      out.loss = [](const Tensor& y, const Tensor& t) {
        return F::cross_entropy(y, t, F::CrossEntropyFuncOptions().label_smoothing(0.1));
      };
      return;
    default:
      out.text += " nll_loss";
      out.loss = [](const Tensor& y, const Tensor& t) { return F::nll_loss(y.log_softmax(1), t); };
  }
}

namespace {

Layer norm(Random& random, Network& out, int64_t channels) {
  switch (random.in(0, 5)) {
    case 0: {
      out.text += " group_norm";
      auto m = out.parts->add(nn::GroupNorm(nn::GroupNormOptions(channels % 4 == 0 ? 4 : 1, channels)));
      return [=](const Tensor& x) mutable { return m->forward(x); };
    }
    case 1: {
      out.text += " instance_norm";
      auto m = out.parts->add(nn::InstanceNorm2d(nn::InstanceNorm2dOptions(channels).affine(true).eps(0.1)));
      return [=](const Tensor& x) mutable { return m->forward(x); };
    }
    default: {
      out.text += " batch_norm";
      auto m = out.parts->add(nn::BatchNorm2d(nn::BatchNorm2dOptions(channels).eps(0.01)));
      return [=](const Tensor& x) mutable { return m->forward(x); };
    }
  }
}

Layer conv(Random& random, Network& out, int64_t from, int64_t to, int64_t kernel, int64_t stride, int64_t groups) {
  int64_t padding = random.one_of(6) ? 0 : kernel / 2;
  out.text +=
      " conv" + std::to_string(kernel) + "/" + std::to_string(stride) + (groups > 1 ? "g" : "") + (padding ? "" : "v");
  auto m = out.parts->add(nn::Conv2d(
      nn::Conv2dOptions(from, to, kernel).stride(stride).padding(padding).groups(groups).bias(!random.one_of(2))));
  return [=](const Tensor& x) mutable { return m->forward(x); };
}

Layer pool(Random& random, Network& out) {
  switch (random.in(0, 3)) {
    case 0: out.text += " max_pool2"; return [](const Tensor& x) { return max_pool2d(x, 2); };
    case 1: out.text += " max_pool3/2"; return [](const Tensor& x) { return max_pool2d(x, 3, 2, 1); };
    case 2: out.text += " avg_pool2"; return [](const Tensor& x) { return avg_pool2d(x, 2); };
    default: out.text += " max_pool2_ceil"; return [](const Tensor& x) { return max_pool2d(x, 2, 2, 0, 1, true); };
  }
}

Layer chain(std::vector<Layer> layers) {
  return [=](Tensor x) {
    for (const Layer& l : layers) x = l(x);
    return x;
  };
}

Layer dropout(Random& random, Network& out, double p) {
  if (!random.one_of(3)) return [](const Tensor& x) { return x; };
  out.text += " dropout";
  auto m = out.parts->add(nn::Dropout(p));
  return [=](const Tensor& x) mutable { return m->forward(x); };
}

Layer squeeze(Network& out, int64_t channels) {
  out.text += " squeeze";
  auto down = out.parts->add(nn::Conv2d(nn::Conv2dOptions(channels, 4, 1)));
  auto up = out.parts->add(nn::Conv2d(nn::Conv2dOptions(4, channels, 1)));
  return [=](const Tensor& x) mutable {
    return x * up->forward(down->forward(adaptive_avg_pool2d(x, 1)).relu()).sigmoid();
  };
}

void draw_images(Random& random, Network& out, int64_t channels, int64_t classes) {
  out.least = {2, 20, 20};
  out.most = {12, 60, 60};
  bool square = random.one_of(2);
  out.text += square ? " square" : " any_shape";
  out.batch = [=](const Extent& e) {
    return Batch{{randn({e.batch, channels, e.length, square ? e.length : e.width})},
                 randint(classes, {e.batch}, kLong)};
  };
}

void draw_head(Random& random, Network& out, Layer body, int64_t channels, int64_t classes) {
  bool pooled = random.one_of(2);
  int64_t places = pooled ? 1 : 4;
  out.text += pooled ? " mean" : " adaptive2";
  auto head = out.parts->add(nn::Linear(channels * places, classes));
  Layer drop = dropout(random, out, 0.2);
  out.forward = [=](const std::vector<Tensor>& in) mutable {
    Tensor x = body(in[0]);
    x = pooled ? x.mean({2, 3}) : adaptive_avg_pool2d(x, 2).flatten(1);
    return head->forward(drop(x));
  };
  draw_class_loss(random, out);
}

void residual(Random& random, Network& out) {
  int64_t colours = random.of({1, 3}), channels = random.of({6, 8, 16});
  std::vector<Layer> layers;
  layers.push_back(conv(random, out, colours, channels, random.of({3, 5, 7}), random.of({1, 2}), 1));
  layers.push_back(norm(random, out, channels));
  layers.push_back(drawn_activation(random, out));
  if (random.one_of(2)) layers.push_back(pool(random, out));
  for (int64_t blocks = random.in(1, 3); blocks > 0; --blocks) {
    int64_t stride = random.of({1, 2}), next = stride == 2 ? channels * 2 : channels;
    out.text += " [";
    auto first = out.parts->add(nn::Conv2d(nn::Conv2dOptions(channels, next, 3).stride(stride).padding(1).bias(false)));
    auto second = out.parts->add(nn::Conv2d(nn::Conv2dOptions(next, next, 3).padding(1).bias(false)));
    out.text += "conv3/" + std::to_string(stride) + " conv3";
    Layer first_norm = norm(random, out, next), second_norm = norm(random, out, next);
    Layer act = drawn_activation(random, out), skip = [](const Tensor& x) { return x; };
    if (stride == 2) {
      auto m = out.parts->add(nn::Conv2d(nn::Conv2dOptions(channels, next, 1).stride(2)));
      skip = [=](const Tensor& x) mutable { return m->forward(x); };
    }
    Layer gate = random.one_of(3) ? squeeze(out, next) : [](const Tensor& x) { return x; };
    layers.push_back([=](const Tensor& x) mutable {
      return act(gate(second_norm(second->forward(act(first_norm(first->forward(x)))))) + skip(x));
    });
    out.text += " ]";
    channels = next;
  }
  draw_images(random, out, colours, 10);
  draw_head(random, out, chain(layers), channels, 10);
}

void depthwise(Random& random, Network& out) {
  int64_t channels = random.of({8, 12, 16});
  std::vector<Layer> layers{conv(random, out, 3, channels, 3, 2, 1), norm(random, out, channels)};
  for (int64_t blocks = random.in(2, 4); blocks > 0; --blocks) {
    int64_t wide = channels * random.of({2, 3}), stride = random.of({1, 1, 2}), kernel = random.of({3, 5});
    std::vector<Layer> block;
    out.text += " [";
    auto add = [&](Layer l) { block.push_back(std::move(l)); };
    add(conv(random, out, channels, wide, 1, 1, 1));
    add(norm(random, out, wide));
    add(drawn_activation(random, out));
    auto m = out.parts->add(
        nn::Conv2d(nn::Conv2dOptions(wide, wide, kernel).stride(stride).padding(kernel / 2).groups(wide).bias(false)));
    out.text += " depthwise" + std::to_string(kernel) + "/" + std::to_string(stride);
    add([=](const Tensor& x) mutable { return m->forward(x); });
    add(norm(random, out, wide));
    if (random.one_of(2)) add(squeeze(out, wide));
    auto back = out.parts->add(nn::Conv2d(nn::Conv2dOptions(wide, channels, 1).bias(false)));
    add([=](const Tensor& x) mutable { return back->forward(x); });
    Layer all = chain(block);
    bool same = stride == 1;
    layers.push_back([=](const Tensor& x) {
      Tensor y = all(x);
      return same && y.sizes() == x.sizes() ? y + x : y;
    });
    out.text += " ]";
  }
  draw_images(random, out, 3, 10);
  draw_head(random, out, chain(layers), channels, 10);
}

// The decoder's image may be one larger or smaller than what it joins.
Tensor joined(const Tensor& up, const Tensor& skip, bool pads) {
  int64_t h = skip.size(2), w = skip.size(3);
  if (pads) {
    Tensor fitted = constant_pad_nd(up, {0, w - up.size(3), 0, h - up.size(2)}, 0);
    return cat({fitted, skip}, 1);
  }
  int64_t least_h = std::min(h, up.size(2)), least_w = std::min(w, up.size(3));
  return cat({up.narrow(2, 0, least_h).narrow(3, 0, least_w), skip.narrow(2, 0, least_h).narrow(3, 0, least_w)}, 1);
}

void unet(Random& random, Network& out) {
  int64_t depth = random.in(1, 3), channels = random.of({6, 8}), kind = random.in(0, 2);
  bool pads = random.one_of(2);
  std::vector<Layer> down, up, pools, last;
  auto level = [&](int64_t from, int64_t to) {
    std::vector<Layer> l;
    auto m = out.parts->add(nn::Conv2d(nn::Conv2dOptions(from, to, 3).padding(1)));
    out.text += " conv3";
    l.push_back([=](const Tensor& x) mutable { return m->forward(x); });
    l.push_back(norm(random, out, to));
    l.push_back(drawn_activation(random, out));
    return chain(l);
  };
  int64_t from = 1;
  for (int64_t d = 0; d <= depth; ++d) {
    down.push_back(level(from, channels << d));
    from = channels << d;
    if (d < depth) pools.push_back(pool(random, out));
  }
  out.text += kind == 0 ? " up_transposed" : kind == 1 ? " up_nearest" : " up_bilinear_to_size";
  out.text += kind == 2 ? "" : pads ? " padded" : " cut";
  for (int64_t d = depth; d-- > 0;) {
    auto m = out.parts->add(nn::ConvTranspose2d(nn::ConvTranspose2dOptions(from, channels << d, 2).stride(2)));
    auto narrow = out.parts->add(nn::Conv2d(nn::Conv2dOptions(from, channels << d, 1)));
    up.push_back([=](const Tensor& x) mutable {
      if (kind == 0) return m->forward(x);
      return narrow->forward(
          kind == 2 ? x : F::interpolate(x, F::InterpolateFuncOptions().scale_factor(std::vector<double>{2, 2})));
    });
    last.push_back(level(channels << (d + 1), channels << d));
    from = channels << d;
  }
  auto head = out.parts->add(nn::Conv2d(nn::Conv2dOptions(channels, 2, 1)));
  out.forward = [=](const std::vector<Tensor>& in) mutable {
    std::vector<Tensor> skips;
    Tensor x = in[0];
    for (size_t d = 0; d < down.size(); ++d) {
      x = down[d](x);
      if (d + 1 == down.size()) break;
      skips.push_back(x);
      x = pools[d](x);
    }
    for (size_t u = 0; u < up.size(); ++u) {
      const Tensor& skip = skips[skips.size() - 1 - u];
      Tensor y = up[u](x);
      if (kind == 2)
        y = F::interpolate(y, F::InterpolateFuncOptions()
                                  .size(std::vector<int64_t>{skip.size(2), skip.size(3)})
                                  .mode(kBilinear)
                                  .align_corners(false));
      x = last[u](kind == 2 ? cat({y, skip}, 1) : joined(y, skip, pads));
    }
    return head->forward(x);
  };
  out.least = {1, 24, 24};
  out.most = {6, 60, 60};
  out.batch = [=](const Extent& e) {
    return Batch{{randn({e.batch, 1, e.length, e.width})}, randint(2, {e.batch, e.length, e.width}, kLong)};
  };
  bool binary = random.one_of(2);
  out.text += binary ? " bce" : " cross_entropy";
  out.loss = [=](const Tensor& y, const Tensor& target) {
    Tensor t =
        target.narrow(1, 0, std::min(target.size(1), y.size(2))).narrow(2, 0, std::min(target.size(2), y.size(3)));
    Tensor part = y.narrow(2, 0, t.size(1)).narrow(3, 0, t.size(2));
    if (!binary) return F::cross_entropy(part, t);
    return F::binary_cross_entropy_with_logits(part.select(1, 0), t.to(kFloat32));
  };
}

void signal(Random& random, Network& out) {
  int64_t channels = random.of({8, 16}), from = 2;
  std::vector<Layer> layers;
  for (int64_t n = random.in(2, 4); n > 0; --n) {
    int64_t kernel = random.of({3, 5, 9}), stride = random.of({1, 2, 3}), dilation = random.of({1, 1, 2});
    auto m = out.parts->add(
        nn::Conv1d(nn::Conv1dOptions(from, channels, kernel).stride(stride).padding(kernel / 2).dilation(dilation)));
    auto bn = out.parts->add(nn::BatchNorm1d(channels));
    out.text += " conv1d" + std::to_string(kernel) + "/" + std::to_string(stride) + "d" + std::to_string(dilation);
    Layer act = drawn_activation(random, out);
    bool pooled = random.one_of(3);
    if (pooled) out.text += " max_pool1d2";
    layers.push_back([=](const Tensor& x) mutable {
      Tensor y = act(bn->forward(m->forward(x)));
      return pooled ? max_pool1d(y, 2) : y;
    });
    from = channels;
  }
  Layer body = chain(layers);
  auto head = out.parts->add(nn::Linear(channels, 5));
  out.forward = [=](const std::vector<Tensor>& in) mutable { return head->forward(std::get<0>(body(in[0]).max(2))); };
  out.least = {2, 200, 0};
  out.most = {16, 900, 0};
  out.batch = [](const Extent& e) { return Batch{{randn({e.batch, 2, e.length})}, randint(5, {e.batch}, kLong)}; };
  draw_class_loss(random, out);
}

}  // namespace

std::vector<Family> convolutional() {
  return {{"residual", residual}, {"depthwise", depthwise}, {"unet", unet}, {"signal", signal}};
}

}  // namespace brasa::test
