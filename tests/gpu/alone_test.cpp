// Exported executables on a GPU against the archives that they were made of, with kernels of their own and with libraries. `scripts/gpu-check pack` makes them, where a linker is.
#include <brasa/brasa.h>
#include <brasa/import.h>
#include <brasa/serialize.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

namespace brasa {
namespace {

namespace fs = std::filesystem;

TEST(Alone, ExecutablesGiveTheirArchivesResults) {
  const char* folder = std::getenv("BRASA_GPU_PROGRAMS");
  if (!folder || device_count(kCUDA) == 0) GTEST_SKIP() << "there are no programs, or there is no GPU";
  int programs = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".pt2") continue;
    SCOPED_TRACE(entry.path().filename().string());
    std::string program = (entry.path().parent_path() / entry.path().stem()).string();
    std::string in = program + ".0.safetensors";
    TensorDict given = load_tensors(in);
    io::ExportedModule module = io::load_pt2(entry.path().string(), {.device = Device("cuda")});
    std::vector<Tensor> inputs;
    for (size_t i = 0; i < module->input_types().size(); ++i)
      inputs.push_back(given.at("in" + std::to_string(i)).to(kCUDA));
    NoGradGuard no_grad;
    std::vector<Tensor> want = module->forward(inputs);
    const char* libraries = std::getenv("BRASA_GPU_LIBRARIES");
    std::string found = std::string("LD_LIBRARY_PATH=") + (libraries ? libraries : "") + ":$LD_LIBRARY_PATH ";
    for (const std::string& by : {program, program + ".libraries"}) {
      SCOPED_TRACE(by);
      std::string out = by + ".out";
      ASSERT_EQ(std::system((found + by + " " + in + " " + out + " --repeat 20").c_str()), 0);
      TensorDict got = load_tensors(out);
      ASSERT_EQ(got.size(), want.size());
      for (size_t i = 0; i < want.size(); ++i)
        EXPECT_TRUE(allclose(got.at("out" + std::to_string(i)), want[i].cpu(), 1e-3, 1e-4)) << i;
      ++programs;
    }
  }
  EXPECT_GT(programs, 0);
}

}  // namespace
}  // namespace brasa
