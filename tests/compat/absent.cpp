#include <gtest/gtest.h>
#include <torch/script.h>
#include <c10d/ProcessGroupMPI.hpp>

#include <cstdlib>

// What Brasa has not: programs that name it compile, and a call says what is missing.
namespace {

TEST(Absent, TorchScript) {
  try {
    torch::jit::load("net.pt");
    FAIL();
  } catch (const torch::Error& e) {
    EXPECT_NE(std::string(e.what()).find("net.pt"), std::string::npos);
    EXPECT_NE(std::string(e.what()).find("TorchScript"), std::string::npos);
  }
  torch::jit::Module empty;
  EXPECT_THROW(empty.forward({torch::ones({1})}), torch::Error);
}

TEST(Absent, ProcessesBesideThisOne) {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"}) unsetenv(name);
  auto group = c10d::ProcessGroupMPI::createProcessGroupMPI();
  EXPECT_EQ(group->getSize(), 1);
  std::vector<torch::Tensor> values = {torch::full({2}, 3.0)};
  EXPECT_TRUE(group->allreduce(values)->wait());
  EXPECT_TRUE(values[0].equal(torch::full({2}, 3.0)));
  setenv("PMI_SIZE", "4", 1);
  EXPECT_THROW(c10d::ProcessGroupMPI::createProcessGroupMPI(), torch::Error);
  unsetenv("PMI_SIZE");
}

}  // namespace
