// Archives that Brasa writes: of imported programs, with other weights.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include <brasa/brasa.h>
#include <brasa/import.h>

namespace brasa::io {
namespace {

namespace fs = std::filesystem;

TEST(WritingArchives, AProgramKeepsItsChangedWeights) {
  std::string path = (fs::temp_directory_path() / ("brasa_written_" + std::to_string(::getpid()) + ".pt2")).string();
  for (const char* name : {"dynamic_batch", "batchnorm_training", "cond", "lstm", "gpt2"}) {
    ExportedModule net = load_pt2(BRASA_TEST_DATA "/models/" + std::string(name) + ".pt2");
    {
      NoGradGuard no_grad;
      for (Tensor& p : net->parameters()) p.add_(0.25);
    }
    net->write_pt2(path);
    ExportedModule again = load_pt2(path);
    EXPECT_EQ(again->inputs(), net->inputs());
    std::vector<Tensor> inputs;
    for (const ProgramInput& in : net->input_types()) {
      std::vector<int64_t> sizes;
      for (const ProgramInput::Size& s : in.sizes) sizes.push_back(s.example);
      inputs.push_back(rand(sizes).to(*in.dtype));
    }
    NoGradGuard no_grad;
    std::vector<Tensor> want = net->forward(inputs), got = again->forward(inputs);
    ASSERT_EQ(got.size(), want.size()) << name;
    for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(got[i].equal(want[i])) << name << " " << i;
    OrderedDict<std::string, Tensor> a = net->named_parameters(), b = again->named_parameters();
    ASSERT_EQ(a.size(), b.size()) << name;
    for (const auto& item : a) {
      ASSERT_TRUE(b.find(item.key())) << name << " " << item.key();
      EXPECT_TRUE(b.find(item.key())->equal(item.value()));
      EXPECT_EQ(b.find(item.key())->requires_grad(), item.value().requires_grad());
    }
  }
  fs::remove(path);
}

}  // namespace
}  // namespace brasa::io
