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

INSTANTIATE_TEST_SUITE_P(Devices, Decoder, testing::Values("cpu", "emu", "cuda"));

}  // namespace
}  // namespace brasa
