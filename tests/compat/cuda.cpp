#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <gtest/gtest.h>
#include <torch/cuda.h>
#include <torch/torch.h>

// CUDA's names on a machine without a GPU: programs ask, and go on without one.
namespace {

class NoGpu : public testing::Test {
  void SetUp() override {
    if (torch::cuda::is_available()) GTEST_SKIP() << "this machine has a GPU";
  }
};

std::string message(const std::function<void()>& f) {
  try {
    f();
  } catch (const c10::Error& e) {
    return e.what_without_backtrace();
  }
  return "no error";
}

TEST_F(NoGpu, Questions) {
  EXPECT_EQ(torch::cuda::device_count(), 0);
  EXPECT_EQ(at::cuda::getNumGPUs(), 0);
  EXPECT_FALSE(torch::cuda::cudnn_is_available());
  torch::Device device = torch::cuda::is_available() ? torch::kCUDA : torch::kCPU;
  EXPECT_EQ(torch::ones({2}, device).sum().item<float>(), 2);
  torch::cuda::manual_seed(3);
  torch::Tensor a = torch::rand({4});
  torch::cuda::manual_seed_all(3);
  EXPECT_TRUE(torch::equal(a, torch::rand({4})));
  c10::cuda::CUDACachingAllocator::emptyCache();
  c10::cuda::OptionalCUDAGuard guard;
  EXPECT_FALSE(guard.current_device());
  at::cuda::CUDAEvent event;
  EXPECT_TRUE(event.query());
  event.synchronize();
}

TEST_F(NoGpu, ErrorsSayWhatIsMissing) {
  EXPECT_EQ(message([] { torch::cuda::synchronize(); }), "No CUDA GPUs are available");
  for (const std::function<void()>& f : std::vector<std::function<void()>>{
           [] { c10::cuda::CUDAGuard guard(0); }, [] { at::cuda::getCurrentCUDAStream(); },
           [] { at::cuda::getStreamFromPool(); }, [] { at::cuda::getCurrentDeviceProperties(); },
           [] { at::cuda::CUDAEvent().record(); }, [] { torch::cuda::max_memory_allocated(); },
           [] { torch::ones({2}, torch::kCUDA); }}) {
    std::string said = message(f);
    EXPECT_NE(said.find("device 'cuda"), std::string::npos) << said;
    EXPECT_NE(said.find("NVIDIA driver"), std::string::npos) << said;
  }
}

// The host is a device with one stream.
TEST(Devices, OfTheCpu) {
  torch::Device cpu(torch::kCPU);
  c10::DeviceGuard guard(cpu);
  EXPECT_EQ(guard.current_device(), cpu);
  c10::Stream stream = brasa::current_stream(cpu);
  EXPECT_EQ(stream.id(), 0u);
  EXPECT_TRUE(stream.query());
  c10::Event event(torch::kCPU, c10::EventFlag::BACKEND_DEFAULT), later(torch::kCPU, c10::EventFlag::BACKEND_DEFAULT);
  event.record(stream);
  later.record(stream);
  EXPECT_GE(event.elapsedTime(later), 0);
  torch::ones({2}).record_stream(stream);
}

}  // namespace
