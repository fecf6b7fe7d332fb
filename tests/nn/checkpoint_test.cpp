#include <gtest/gtest.h>

#include <brasa/brasa.h>
#include <brasa/nn.h>
#include <brasa/pickle.h>
#include <brasa/serialize.h>

namespace brasa {
namespace {

TEST(ModuleCheckpoint, AStateDictLoadsIntoAModule) {
  nn::Sequential net(nn::Linear(3, 4), nn::Linear(4, 2));
  pickle::Value::Pairs pairs;
  for (const auto& item : net->named_parameters()) pairs.emplace_back(item.key(), item.value().detach() + 1);
  std::string file = pickle::dump(pickle::Value::ordered_dict(pairs));
  load(net, file.data(), file.size());
  for (const auto& [name, value] : pairs)
    EXPECT_TRUE(net->named_parameters()[name.text()].equal(value.to_tensor())) << name.text();
}

TEST(ModuleCheckpoint, AnArchiveOfLibTorchLoadsIntoAModule) {
  nn::Sequential net(nn::Linear(3, 4), nn::BatchNorm1d(4), nn::ReLU(), nn::Linear(4, 2));
  load(net, BRASA_TEST_DATA "/checkpoints/libtorch/module.pt");
  EXPECT_EQ(net->named_buffers()["1.num_batches_tracked"].item<int64_t>(), 4);
}

}  // namespace
}  // namespace brasa
