#include <gtest/gtest.h>

#include <brasa/brasa.h>
#include <brasa/compile.h>

#include "gpu/on_device.h"
#include "models/gpt.h"

// A GPT one token after the other, with its cache: the scores of the whole text at once.
namespace brasa {
namespace {

class Decoder : public OnDevice {};

TEST_P(Decoder, TokenForTokenAsAllAtOnce) {
  for (DType dtype : {kFloat32, kBFloat16}) {
    manual_seed(5);
    models::GPTDecoder model(models::GPTOptions{.depth = 2, .width = 32, .heads = 4, .vocabulary = 50, .context = 12});
    model->to(device_);
    model->to(dtype);
    Tensor text = randint(50, {1, 9}, kInt64).to(device_);
    InferenceMode guard;
    Tensor want = model->gpt(text);
    auto step = compile([=](const Tensor& token, const Tensor& position) mutable { return model(token, position); });
    double bound = dtype == kFloat32 ? 1e-4 : 3e-2;
    for (int64_t i = 0; i < text.size(1); ++i) {
      Tensor got = step(text.slice(1, i, i + 1), full({1}, i, kInt64).to(device_));
      EXPECT_TRUE(allclose(got[0], want[i], bound, bound))
          << name(dtype) << " " << i << ": " << (got[0] - want[i]).abs().max();
    }
  }
}

// Along each dimension, in tensors and in views of them.
TEST_P(Decoder, CachesChangeAtOnePlaceAlone) {
  manual_seed(6);
  for (int64_t dim = 0; dim < 3; ++dim) {
    Tensor want = randn({3, 4, 9, 16}), cache = want.to(device_).clone();
    std::vector<int64_t> row = {4, 9, 16};
    row[dim] = 1;
    auto write = [dim](const Tensor& into, const Tensor& at, const Tensor& rows) {
      for (int64_t layer = 0; layer < 2; ++layer) into[layer].index_copy_(dim, at, rows[layer] * 2);
    };
    auto step = compile([=](const Tensor& at, const Tensor& rows) { write(cache, at, rows); });
    for (int64_t place : {0, 3, 1}) {
      Tensor at = full({1}, place, kInt64), rows = randn({2, row[0], row[1], row[2]});
      write(want, at, rows);
      step(at.to(device_), rows.to(device_));
      EXPECT_TRUE(equal(cache.cpu(), want)) << dim << " " << place;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, Decoder, testing::Values("cpu", "emu", "cuda"));

}  // namespace
}  // namespace brasa
