// Networks over sequences of any length and rows of features.
#include <brasa/brasa.h>

#include "networks.h"

namespace brasa::test {

namespace F = nn::functional;

namespace {

constexpr int64_t kWords = 50;

struct Block {
  nn::LayerNorm first{nullptr}, second{nullptr};
  nn::Linear all{nullptr}, back{nullptr}, up{nullptr}, down{nullptr};
  Block(Network& out, int64_t features)
      : first(out.parts->add(nn::LayerNorm(nn::LayerNormOptions({features})))),
        second(out.parts->add(nn::LayerNorm(nn::LayerNormOptions({features})))),
        all(out.parts->add(nn::Linear(features, 3 * features))),
        back(out.parts->add(nn::Linear(features, features))),
        up(out.parts->add(nn::Linear(features, 4 * features))),
        down(out.parts->add(nn::Linear(4 * features, features))) {}
};

// Attention by one operator, or by its parts.
Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const std::optional<Tensor>& mask, bool causal,
                 bool whole) {
  if (whole) return scaled_dot_product_attention(q, k, v, mask, 0.0, causal);
  int64_t n = q.size(-2);
  Tensor scores = q.matmul(k.transpose(-2, -1)) / std::sqrt(static_cast<double>(q.size(-1)));
  if (causal) scores = scores.masked_fill(ones({n, n}, kBool).triu(1), -1e9);
  if (mask) scores = scores.masked_fill(mask->logical_not(), -1e9);
  return scores.softmax(-1).matmul(v);
}

std::vector<Block> draw_blocks(Random& random, Network& out, int64_t features) {
  std::vector<Block> blocks;
  for (int64_t n = random.in(1, 2); n > 0; --n) blocks.emplace_back(out, features);
  out.text += " " + std::to_string(blocks.size()) + "x" + std::to_string(features);
  return blocks;
}

// Runs the blocks on x: batch, length, features.
std::function<Tensor(Tensor, const std::optional<Tensor>&)> transformer(Random& random, Network& out, int64_t features,
                                                                        bool causal) {
  std::vector<Block> blocks = draw_blocks(random, out, features);
  int64_t heads = random.of({2, 4});
  bool whole = random.one_of(2), drops = random.one_of(3);
  out.text += whole ? " sdpa" : " by_parts";
  Layer act = drawn_activation(random, out);
  auto drop = out.parts->add(nn::Dropout(drops ? 0.1 : 0.0));
  if (drops) out.text += " dropout";
  return [=](Tensor x, const std::optional<Tensor>& mask) mutable {
    int64_t b = x.size(0), n = x.size(1);
    for (Block& block : blocks) {
      std::vector<Tensor> parts = block.all->forward(block.first->forward(x)).chunk(3, -1);
      for (Tensor& p : parts) p = p.view({b, n, heads, features / heads}).transpose(1, 2);
      Tensor y = attention(parts[0], parts[1], parts[2], mask, causal, whole);
      x = x + drop->forward(block.back->forward(y.transpose(1, 2).reshape({b, n, features})));
      x = x + drop->forward(block.down->forward(act(block.up->forward(block.second->forward(x)))));
    }
    return x;
  };
}

void gpt(Random& random, Network& out) {
  int64_t features = random.of({16, 24, 32});
  auto words = out.parts->add(nn::Embedding(kWords, features));
  auto places = out.parts->add(nn::Embedding(128, features));
  auto run = transformer(random, out, features, true);
  auto last = out.parts->add(nn::LayerNorm(nn::LayerNormOptions({features})));
  auto head = out.parts->add(nn::Linear(features, kWords));
  out.forward = [=](const std::vector<Tensor>& in) mutable {
    int64_t n = in[0].size(1);
    Tensor x = words->forward(in[0]) + places->forward(arange(n, kLong));
    return head->forward(last->forward(run(x, std::nullopt)));
  };
  out.loss = [](const Tensor& y, const Tensor& t) {
    return F::cross_entropy(y.reshape({-1, kWords}), t.reshape({-1}));
  };
  out.least = {1, 3, 0};
  out.most = {12, 100, 0};
  out.batch = [](const Extent& e) {
    return Batch{{randint(kWords, {e.batch, e.length}, kLong)}, randint(kWords, {e.batch, e.length}, kLong)};
  };
}

void bert(Random& random, Network& out) {
  int64_t features = random.of({16, 32}), pooling = random.in(0, 2);
  auto words = out.parts->add(nn::Embedding(kWords, features));
  auto run = transformer(random, out, features, false);
  auto head = out.parts->add(nn::Linear(features, 4));
  out.text += pooling == 0 ? " masked_mean" : pooling == 1 ? " first" : " masked_max";
  out.forward = [=](const std::vector<Tensor>& in) mutable {
    Tensor mask = arange(in[0].size(1), kLong).unsqueeze(0) < in[1].unsqueeze(1);  // batch, length
    Tensor x = run(words->forward(in[0]), mask.unsqueeze(1).unsqueeze(1));
    Tensor rows = mask.unsqueeze(2);
    if (pooling == 0) return head->forward((x * rows).sum(1) / in[1].unsqueeze(1).to(kFloat32));
    if (pooling == 1) return head->forward(x.select(1, 0));
    return head->forward(x.masked_fill(rows.logical_not(), -1e9).amax(1));
  };
  draw_class_loss(random, out);
  out.least = {1, 4, 0};
  out.most = {16, 90, 0};
  out.batch = [](const Extent& e) {
    return Batch{{randint(kWords, {e.batch, e.length}, kLong), randint(1, e.length + 1, {e.batch}, kLong)},
                 randint(4, {e.batch}, kLong)};
  };
}

void recurrent(Random& random, Network& out) {
  int64_t features = random.of({8, 12}), hidden = random.of({8, 16}), layers = random.in(1, 2);
  bool both = random.one_of(2), gru = random.one_of(2), every = random.one_of(2);
  out.text += std::string(gru ? " gru" : " lstm") + std::to_string(layers) + (both ? " both_ways" : "") +
              (every ? " each_step" : " last_step");
  auto lstm = out.parts->add(
      nn::LSTM(nn::LSTMOptions(features, hidden).num_layers(layers).batch_first(true).bidirectional(both)));
  auto g = out.parts->add(
      nn::GRU(nn::GRUOptions(features, hidden).num_layers(layers).batch_first(true).bidirectional(both)));
  auto head = out.parts->add(nn::Linear(hidden * (both ? 2 : 1), 3));
  out.forward = [=](const std::vector<Tensor>& in) mutable {
    Tensor y = gru ? std::get<0>(g->forward(in[0])) : std::get<0>(lstm->forward(in[0]));
    return every ? head->forward(y).transpose(1, 2) : head->forward(y.select(1, -1));
  };
  draw_class_loss(random, out);
  out.least = {1, 3, 0};
  out.most = {20, 40, 0};
  out.batch = [=](const Extent& e) {
    return Batch{{randn({e.batch, e.length, features})},
                 every ? randint(3, {e.batch, e.length}, kLong) : randint(3, {e.batch}, kLong)};
  };
}

void rows(Random& random, Network& out) {
  int64_t features = random.of({7, 16, 30}), from = features;
  std::vector<Layer> layers;
  for (int64_t n = random.in(1, 4); n > 0; --n) {
    int64_t to = random.of({10, 32, 64});
    auto m = out.parts->add(nn::Linear(from, to));
    auto bn = out.parts->add(nn::BatchNorm1d(to));
    auto drop = out.parts->add(nn::Dropout(0.2));
    bool norms = random.one_of(2), drops = random.one_of(3);
    out.text += " linear" + std::to_string(to) + (norms ? " batch_norm" : "") + (drops ? " dropout" : "");
    Layer act = drawn_activation(random, out);
    layers.push_back([=](const Tensor& x) mutable {
      Tensor y = m->forward(x);
      if (norms) y = bn->forward(y);
      y = act(y);
      return drops ? drop->forward(y) : y;
    });
    from = to;
  }
  auto head = out.parts->add(nn::Linear(from, 3));
  int64_t kind = random.in(0, 3);
  out.text += kind == 0 ? " mse" : kind == 1 ? " l1" : kind == 2 ? " huber" : " bce";
  out.forward = [=](const std::vector<Tensor>& in) mutable {
    Tensor x = in[0];
    for (Layer& l : layers) x = l(x);
    return head->forward(x);
  };
  out.loss = [=](const Tensor& y, const Tensor& t) {
    if (kind == 0) return F::mse_loss(y, t);
    if (kind == 1) return F::l1_loss(y, t);
    if (kind == 2) return F::smooth_l1_loss(y, t);
    return F::binary_cross_entropy_with_logits(y, t);
  };
  out.least = {2, 0, 0};
  out.most = {200, 0, 0};
  out.batch = [=](const Extent& e) { return Batch{{randn({e.batch, features})}, rand({e.batch, 3})}; };
}

}  // namespace

std::vector<Family> sequential() { return {{"gpt", gpt}, {"bert", bert}, {"recurrent", recurrent}, {"rows", rows}}; }

}  // namespace brasa::test
