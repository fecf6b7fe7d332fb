#include <gtest/gtest.h>

#include <brasa/brasa.h>
#include <brasa/nn.h>
#include <brasa/state_dict.h>

#include "error_of.h"
#include "models/gpt.h"
#include "models/vit.h"

namespace brasa {
namespace {

TensorDict file(const std::string& name) { return load_tensors(BRASA_TEST_DATA "/state_dicts/" + name); }

template <class F>
void expect_call(const std::string& name, F f) {
  TensorDict call = file(name + ".call.safetensors");
  NoGradGuard no_grad;
  Tensor y = f(call.at("input"));
  EXPECT_TRUE(allclose(y, call.at("output"), 1e-4, 1e-5)) << (y - call.at("output")).abs().max().item<float>();
}

models::ViT small_vit() {
  models::ViTOptions options;
  options.image_size = 8;
  options.patch_size = 4;
  options.classes = 5;
  options.width = 8;
  options.depth = 2;
  options.heads = 2;
  models::ViT vit(options);
  vit->eval();
  return vit;
}

TEST(ForeignModels, VitOfTimm) {
  models::ViT vit = small_vit();
  io::load_state_dict(vit, file("vit_timm.pth"));
  expect_call("vit_timm", [&](const Tensor& x) { return vit(x); });
}

TEST(ForeignModels, VitOfTransformersByBothItsNames) {
  for (const char* name : {"vit_transformers.safetensors", "vit_transformers.pth"}) {
    models::ViT vit = small_vit();
    io::load_state_dict(vit, file(name), io::transformers_vit());
    expect_call("vit_transformers", [&](const Tensor& x) { return vit(x); });
  }
}

TEST(ForeignModels, Gpt2) {
  models::GPTOptions options{.depth = 2, .width = 8, .heads = 2, .vocabulary = 32, .context = 12};
  models::GPT gpt(options);
  io::load_state_dict(gpt, file("gpt2.safetensors"), models::gpt2_rules());
  expect_call("gpt2", [&](const Tensor& x) { return gpt(x).unflatten(0, {2, 6}); });
}

// BERT of nn::TransformerEncoder, whose inputs are [tokens, batch, width].
struct BertImpl : nn::Module {
  BertImpl() {
    auto embeddings = std::make_shared<nn::SequentialImpl>();
    embeddings->push_back("word_embeddings", words);
    embeddings->push_back("position_embeddings", positions);
    embeddings->push_back("token_type_embeddings", kinds);
    embeddings->push_back("LayerNorm", norm);
    register_module("embeddings", embeddings);
    register_module("encoder", encoder);
  }
  Tensor forward(const Tensor& tokens) {
    Tensor x = words(tokens) + positions(arange(tokens.size(1))) + kinds(zeros_like(tokens));
    return encoder(norm(x).transpose(0, 1)).transpose(0, 1);
  }
  nn::Embedding words{32, 8}, positions{12, 8}, kinds{2, 8};
  nn::LayerNorm norm{nn::LayerNormOptions({8})};
  nn::TransformerEncoder encoder{nn::TransformerEncoderOptions(
      nn::TransformerEncoderLayerOptions(8, 2).dim_feedforward(16).activation(kGELU).dropout(0), 2)};
};
BRASA_MODULE(Bert);

TEST(ForeignModels, BertInLibTorchsEncoder) {
  Bert bert;
  bert->eval();
  io::NameRules rules = io::transformers_bert();
  rules.push_back(io::drop("pooler.**"));
  io::load_state_dict(bert, file("bert.safetensors"), rules);
  expect_call("bert", [&](const Tensor& x) { return bert(x); });
}

TEST(StateDict, WildcardsTakePartsOfNames) {
  Tensor a = ones({1});
  auto names = [&](const char* name, const io::NameRules& rules) {
    std::string out;
    for (const auto& [key, tensor] : io::apply_rules({{name, a}}, rules)) out += key + " ";
    return out;
  };
  EXPECT_EQ(names("h.3.attn.weight", {io::rename("h.*.attn.*", "blocks.*.a.*")}), "blocks.3.a.weight ");
  EXPECT_EQ(names("h.3.4.weight", {io::rename("h.*.weight", "blocks.*")}), "h.3.4.weight ");
  EXPECT_EQ(names("h.3.4.weight", {io::rename("h.**.weight", "blocks.**")}), "blocks.3.4 ");
  EXPECT_EQ(names("layer12.weight", {io::rename("layer*.weight", "*")}), "12 ");
  EXPECT_EQ(names("a", {io::rename("a", "b"), io::rename("b", "c")}), "c ");
  EXPECT_EQ(names("a.b", {io::drop("a.*")}), "");
  EXPECT_EQ(names("a", {io::copy("*", "*.again")}), "a a.again ");
}

TEST(StateDict, TensorsAreSplitJoinedAndTransposed) {
  Tensor qkv = arange(12).reshape({6, 2});
  io::NameRules apart = {io::split("*.qkv", {"*.q", "*.k", "*.v"})};
  TensorDict parts = io::apply_rules({{"a.qkv", qkv}}, apart);
  EXPECT_TRUE(parts.at("a.k").equal(qkv.narrow(0, 2, 2)));
  EXPECT_EQ(parts.at("a.k").storage().data(), qkv.storage().data());
  io::NameRules together = {io::join({"*.q", "*.k", "*.v"}, "*.qkv", 1), io::transpose("*.qkv")};
  EXPECT_TRUE(io::apply_rules(parts, together)
                  .at("a.qkv")
                  .equal(cat({parts["a.q"].t(), parts["a.k"].t(), parts["a.v"].t()}, 0)));
}

TEST(StateDict, Errors) {
  Tensor a = ones({3}), m = ones({4, 2});
  auto of_rules = [](const TensorDict& tensors, const io::NameRule& rule) {
    return error_of([&] { io::apply_rules(tensors, {rule}); });
  };
  EXPECT_EQ(error_of([] { io::rename("a.*", "b"); }), "a rule of names has 1 wildcards in 'a.*' and 0 in 'b'");
  EXPECT_EQ(of_rules({{"a", a}, {"b", a}}, io::rename("a", "b")), "two tensors get the name 'b' by a rule of names");
  EXPECT_EQ(of_rules({{"1.q", a}, {"1.v", a}}, io::join({"*.q", "*.k", "*.v"}, "*.qkv")),
            "'1.qkv' is joined of 3 tensors; there is no '1.k'");
  EXPECT_EQ(of_rules({{"q", m}, {"k", ones({4, 3})}}, io::join({"q", "k"}, "qk")),
            "'qk' cannot be joined along dimension 0: 'k' is float32[4, 3], 'q' float32[4, 2]");
  EXPECT_EQ(of_rules({{"a", a}}, io::split("a", {"b", "c"})),
            "'a' has sizes [3]; a rule splits its dimension 0 into 2 equal parts");
  EXPECT_EQ(of_rules({{"a", a}}, io::transpose("a")), "'a' has sizes [3]; a rule transposes matrices only");
}

TEST(StateDict, StrictNamesAllThatDoNotFitAndChangesNothing) {
  nn::Linear linear(2, 3);
  Tensor before = linear->bias.detach().clone();
  TensorDict tensors = {{"bias", ones({3})}, {"weight", ones({2, 3})}, {"scale", ones({1})}, {"shift", ones({1})}};
  EXPECT_EQ(error_of([&] { io::load_state_dict(linear, tensors); }),
            "the state dictionary is not the module's:\n  2 unexpected: 'scale', 'shift'\n"
            "  'weight' has sizes [2, 3], expected [3, 2]");
  EXPECT_TRUE(linear->bias.equal(before));
  tensors.erase("weight");
  io::LoadedStateDict loaded = io::load_state_dict(linear, tensors, {}, false);
  EXPECT_EQ(loaded.missing, std::vector<std::string>{"weight"});
  EXPECT_EQ(loaded.unexpected, (std::vector<std::string>{"scale", "shift"}));
  EXPECT_TRUE(linear->bias.equal(ones({3})));
}

}  // namespace
}  // namespace brasa
