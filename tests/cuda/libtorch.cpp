#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <gtest/gtest.h>
#include <torch/cuda.h>
#include <torch/torch.h>

#include "fake.h"

// A program of LibTorch's on the fake driver: which stream its calls go to.
namespace {

const bool kFakes = (brasa::test::use_fakes(), true);

using brasa::test::fake_driver;

std::string launches_on(const at::cuda::CUDAStream& stream) {
  return "launch on stream " + std::to_string(stream.id() + 1);  // the driver counts from 1
}

TEST(LibTorchCuda, Devices) {
  EXPECT_TRUE(torch::cuda::is_available());
  EXPECT_EQ(torch::cuda::device_count(), 1);
  EXPECT_EQ(c10::cuda::current_device(), 0);
  const cudaDeviceProp* p = at::cuda::getCurrentDeviceProperties();
  EXPECT_STREQ(p->name, "a GPU of tests");
  EXPECT_EQ(p->major, 9);
  EXPECT_EQ(p->warpSize, 32);
  EXPECT_EQ(p->maxThreadsPerMultiProcessor, 2048);
  EXPECT_EQ(p->totalGlobalMem, size_t{64} << 30);
  EXPECT_EQ(at::cuda::getDeviceProperties(0), p);
  EXPECT_THROW(at::cuda::getDeviceProperties(1), c10::Error);
  EXPECT_THROW(torch::cuda::synchronize(1), c10::Error);
  torch::cuda::synchronize();
}

TEST(LibTorchCuda, WorkGoesToTheStreamOfTheGuard) {
  torch::Tensor x = torch::ones({64}, torch::kCUDA);
  at::cuda::CUDAStream usual = at::cuda::getCurrentCUDAStream(), other = at::cuda::getStreamFromPool();
  EXPECT_EQ(usual, at::cuda::getDefaultCUDAStream());
  ASSERT_NE(usual, other);
  EXPECT_NE(usual.stream(), other.stream());
  auto launched = [&](const at::cuda::CUDAStream& on, auto work) {
    int before = fake_driver().calls(launches_on(on));
    work();
    return fake_driver().calls(launches_on(on)) - before;
  };
  EXPECT_EQ(launched(other, [&] { x.sin(); }), 0);
  {
    c10::cuda::CUDAStreamGuard guard(other);
    EXPECT_EQ(at::cuda::getCurrentCUDAStream(), other);
    EXPECT_EQ(guard.original_stream(), usual);
    EXPECT_GT(launched(other, [&] { x.sin(); }), 0);
    EXPECT_EQ(launched(usual, [&] { x.sin(); }), 0);
    {
      at::cuda::OptionalCUDAStreamGuard inner;
      inner.reset_stream(usual);
      EXPECT_GT(launched(usual, [&] { x.sin(); }), 0);
    }
    EXPECT_EQ(at::cuda::getCurrentCUDAStream(), other);
  }
  EXPECT_EQ(at::cuda::getCurrentCUDAStream(), usual);
  EXPECT_GT(launched(usual, [&] { x.sin(); }), 0);
}

// What was recorded before the guard is work of the stream that was current then.
TEST(LibTorchCuda, ACompiledFunctionChangesItsStream) {
  at::cuda::CUDAStream other = at::cuda::getStreamFromPool(), usual = at::cuda::getDefaultCUDAStream();
  auto f = torch::compile([&](const torch::Tensor& x) {
    torch::Tensor y = x.sin() * 2;
    c10::cuda::CUDAStreamGuard guard(other);
    return y.cos() + 1;
  });
  torch::Tensor x = torch::ones({64}, torch::kCUDA);
  for (int i = 0; i < 4; ++i) {
    int on_usual = fake_driver().calls(launches_on(usual)), on_other = fake_driver().calls(launches_on(other));
    f(x);
    EXPECT_EQ(fake_driver().calls(launches_on(usual)) - on_usual, 1) << i;
    EXPECT_EQ(fake_driver().calls(launches_on(other)) - on_other, 1) << i;
  }
  EXPECT_FALSE(f.explain().breaks.empty());
  auto whole = torch::compile(
      [&](const torch::Tensor& t) {
        torch::Tensor y = t.sin();
        c10::cuda::CUDAStreamGuard guard(other);
        return y.cos();
      },
      {.fullgraph = true});
  try {
    whole(x);
    FAIL();
  } catch (const c10::Error& e) {
    EXPECT_NE(std::string(e.what()).find("another stream"), std::string::npos) << e.what();
  }
  EXPECT_EQ(at::cuda::getCurrentCUDAStream(), usual);
}

TEST(LibTorchCuda, Events) {
  at::cuda::CUDAStream other = at::cuda::getStreamFromPool(/*isHighPriority=*/true);
  EXPECT_GT(fake_driver().calls("urgent stream"), 0);
  at::cuda::CUDAEvent plain, start(cudaEventDefault), end(cudaEventDefault);
  EXPECT_FALSE(plain.isCreated());
  EXPECT_TRUE(plain.query());
  EXPECT_EQ(plain.device_index(), -1);
  plain.record();
  EXPECT_EQ(plain.device_index(), 0);
  int waits = fake_driver().calls("cuStreamWaitEvent");
  plain.block(other);
  EXPECT_EQ(fake_driver().calls("cuStreamWaitEvent"), waits + 1);
  EXPECT_TRUE(plain.query());
  EXPECT_THROW(start.elapsed_time(end), c10::Error);
  start.record(other);
  end.record(other);
  end.synchronize();
  EXPECT_GE(start.elapsed_time(end), 0);
  EXPECT_THROW(plain.elapsed_time(end), c10::Error);
  EXPECT_TRUE(other.query());
  other.synchronize();
  c10::Event generic(torch::kCUDA);
  generic.record(other);
  EXPECT_TRUE(generic.was_marked_for_recording());
}

TEST(LibTorchCuda, Guards) {
  c10::cuda::CUDAGuard guard(0);
  EXPECT_EQ(guard.current_device(), c10::Device("cuda:0"));
  EXPECT_THROW(guard.set_index(3), c10::Error);
  EXPECT_THROW(c10::cuda::CUDAGuard(torch::Device("cpu")), c10::Error);
  c10::cuda::OptionalCUDAGuard none;
  EXPECT_FALSE(none.original_device());
  none.set_index(0);
  EXPECT_EQ(none.current_device()->index(), 0);
  EXPECT_THROW(c10::cuda::CUDAStream(c10::Stream(torch::Device("cpu"), 0)), c10::Error);
}

TEST(LibTorchCuda, Memory) {
  namespace allocator = c10::cuda::CUDACachingAllocator;
  constexpr size_t kAll = static_cast<size_t>(allocator::StatType::AGGREGATE);
  allocator::emptyCache();
  int64_t before = allocator::getDeviceStats(0).allocated_bytes[kAll].current;
  allocator::resetPeakStats(0);
  {
    torch::Tensor x = torch::empty({1 << 20}, torch::TensorOptions(torch::kCUDA));
    EXPECT_EQ(torch::cuda::memory_allocated() - before, 4 << 20);
  }
  EXPECT_EQ(torch::cuda::memory_allocated(), before);
  EXPECT_EQ(torch::cuda::max_memory_allocated() - before, 4 << 20);
  int64_t reserved = torch::cuda::memory_reserved();
  allocator::emptyCache();
  EXPECT_LE(torch::cuda::memory_reserved(), reserved - (4 << 20));
  EXPECT_THROW(allocator::getDeviceStats(0).allocated_bytes[1], c10::Error);
}

TEST(LibTorchCuda, Tf32IsTheComputeTypeOfProducts) {
  torch::Tensor a = torch::ones({32, 32}, torch::Device("emu")), b = a + 1;
  auto in_tf32 = [&] {
    int before = brasa::test::fake_cublaslt().calls("tf32");
    a.mm(b);
    return brasa::test::fake_cublaslt().calls("tf32") - before;
  };
  at::Context& context = at::globalContext();
  EXPECT_FALSE(context.allowTF32CuBLAS());
  EXPECT_EQ(in_tf32(), 0);
  context.setAllowTF32CuBLAS(true);
  EXPECT_EQ(context.float32MatmulPrecision(), at::Float32MatmulPrecision::HIGH);
  EXPECT_EQ(in_tf32(), 1);
  context.setFloat32MatmulPrecision("highest");
  EXPECT_EQ(in_tf32(), 0);
  context.setFloat32MatmulPrecision("medium");
  EXPECT_TRUE(context.allowTF32CuBLAS());
  EXPECT_EQ(in_tf32(), 1);
  context.setAllowTF32CuBLAS(false);
  EXPECT_EQ(in_tf32(), 0);
}

}  // namespace
