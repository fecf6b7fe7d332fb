#include <gtest/gtest.h>

#include <brasa/autograd.h>
#include <brasa/brasa.h>
#include <brasa/dlpack.h>
#include <brasa/error.h>

#include <cstring>
#include <functional>

#include "error_of.h"
#include "runtime/emu/inject.h"

// The structs as another library's header would have them.
namespace other {
struct DLTensor {
  void* data;
  struct {
    int32_t type, id;
  } device;
  int32_t ndim;
  struct {
    uint8_t code, bits;
    uint16_t lanes;
  } dtype;
  int64_t *shape, *strides;
  uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor*);
};
struct DLManagedTensorVersioned {
  struct {
    uint32_t major, minor;
  } version;
  void* manager_ctx;
  void (*deleter)(DLManagedTensorVersioned*);
  uint64_t flags;
  DLTensor dl_tensor;
};
}  // namespace other

namespace brasa {
namespace {

using dlpack::ManagedTensor;
using dlpack::ManagedTensorVersioned;

// A library that gives away an array of float32, and counts how often it gets it back.
template <class Managed>
struct Giver {
  float values[24] = {};
  int64_t shape[3] = {2, 3, 4}, strides[3] = {12, 4, 1};
  int deleted = 0;
  Managed managed{};

  Giver() {
    for (int i = 0; i < 24; ++i) values[i] = static_cast<float>(i);
    managed.dl_tensor.data = values;
    managed.dl_tensor.device = {1, 0};
    managed.dl_tensor.ndim = 3;
    managed.dl_tensor.dtype = {2, 32, 1};
    managed.dl_tensor.shape = shape;
    managed.dl_tensor.strides = strides;
    managed.manager_ctx = this;
    managed.deleter = [](Managed* self) { ++static_cast<Giver*>(self->manager_ctx)->deleted; };
    if constexpr (requires { managed.version; }) managed.version = {1, 0};
  }
};

void expect_error(const std::string& message, const std::string& says) {
  EXPECT_NE(message.find(says), std::string::npos) << "expected '" << says << "', got '" << message << "'";
}

template <class T>
class DLPack : public testing::Test {};
using Structs =
    testing::Types<ManagedTensor, ManagedTensorVersioned, other::DLManagedTensor, other::DLManagedTensorVersioned>;
TYPED_TEST_SUITE(DLPack, Structs);

TYPED_TEST(DLPack, TakesMemoryAndGivesItBackOnce) {
  Giver<TypeParam> giver;
  {
    Tensor x = from_dlpack(&giver.managed);
    EXPECT_EQ(x.sizes(), IntArrayRef({2, 3, 4}));
    EXPECT_EQ(x.scalar_type(), kFloat32);
    EXPECT_EQ(x.const_data_ptr(), giver.values);
    EXPECT_EQ(x.sum().item<float>(), 276);
    x.mul_(2);
    EXPECT_EQ(giver.values[23], 46);
    giver.values[0] = 5;
    Tensor view = x[0][0];
    x = Tensor();
    EXPECT_EQ(giver.deleted, 0);
    EXPECT_EQ(view[0].item<float>(), 5);
  }
  EXPECT_EQ(giver.deleted, 1);
}

TYPED_TEST(DLPack, GivesItsMemoryAway) {
  reset_peak_memory_stats();
  int64_t before = memory_stats().allocated;
  Tensor base = arange(12, kFloat32).view({3, 4}).cpu();
  auto* m = to_dlpack<TypeParam>(base.t().slice(0, 1));
  const auto& a = m->dl_tensor;
  EXPECT_EQ(a.data, static_cast<float*>(base.data_ptr()) + 1);
  EXPECT_EQ(a.ndim, 2);
  EXPECT_EQ(a.shape[0], 3);
  EXPECT_EQ(a.shape[1], 3);
  EXPECT_EQ(a.strides[0], 1);
  EXPECT_EQ(a.strides[1], 4);
  EXPECT_EQ(a.byte_offset, 0u);
  base.reset();
  EXPECT_EQ(static_cast<float*>(a.data)[10], 11);  // the memory lives on
  EXPECT_GT(memory_stats().allocated, before);
  m->deleter(m);
  EXPECT_EQ(memory_stats().allocated, before);
}

TYPED_TEST(DLPack, ThereAndBackIsTheSameMemory) {
  Tensor x = rand({4, 5}).cpu().t();
  {
    Tensor y = from_dlpack(to_dlpack<TypeParam>(x));
    EXPECT_EQ(y.const_data_ptr(), x.const_data_ptr());
    EXPECT_EQ(y.strides(), x.strides());
    y.add_(1);
    EXPECT_TRUE(y.equal(x));
  }
  EXPECT_GE(x.min().item<float>(), 1);
}

TYPED_TEST(DLPack, WhereTheElementsLie) {
  Giver<TypeParam> giver;
  auto& a = giver.managed.dl_tensor;
  auto taken = [&] { return from_dlpack(&giver.managed); };
  a.strides = nullptr;
  EXPECT_EQ(taken().strides(), IntArrayRef({12, 4, 1}));
  giver.shape[0] = 1;
  a.byte_offset = 48;
  EXPECT_EQ(taken().sum().template item<float>(), 210);  // 12 + … + 23
  a.byte_offset = 0;
  a.strides = giver.strides;
  giver.shape[0] = 4, giver.strides[0] = 0;  // four times the same
  EXPECT_EQ(taken().sum().template item<float>(), 264);
  giver.shape[0] = 0;
  a.data = nullptr;
  EXPECT_EQ(taken().numel(), 0);
  a.data = giver.values + 7;
  a.ndim = 0;
  a.shape = a.strides = nullptr;
  EXPECT_EQ(taken().template item<float>(), 7);
  EXPECT_EQ(giver.deleted, 5);
  giver.managed.deleter = nullptr;
  EXPECT_EQ(taken().template item<float>(), 7);
}

TYPED_TEST(DLPack, EveryDType) {
  struct Case {
    DType dtype;
    uint8_t code, bits;
  } cases[] = {{kBool, 6, 8},          {kUInt8, 1, 8},           {kUInt64, 1, 64},        {kInt8, 0, 8},
               {kInt16, 0, 16},        {kInt32, 0, 32},          {kInt64, 0, 64},         {kFloat16, 2, 16},
               {kFloat32, 2, 32},      {kFloat64, 2, 64},        {kBFloat16, 4, 16},      {kComplexHalf, 5, 32},
               {kComplexFloat, 5, 64}, {kComplexDouble, 5, 128}, {kFloat8_e4m3fn, 10, 8}, {kFloat8_e5m2, 12, 8}};
  EXPECT_EQ(std::size(cases), std::size(kDTypes));
  for (const Case& c : cases) {
    Tensor x = empty({2}, TensorOptions(c.dtype).device(kCPU));
    auto* m = to_dlpack<TypeParam>(x);
    EXPECT_EQ(m->dl_tensor.dtype.code, c.code) << c.dtype;
    EXPECT_EQ(m->dl_tensor.dtype.bits, c.bits) << c.dtype;
    EXPECT_EQ(m->dl_tensor.dtype.lanes, 1);
    EXPECT_EQ(from_dlpack(m).scalar_type(), c.dtype);
  }
}

// After an error the struct is the caller's still.
TYPED_TEST(DLPack, WhatBrasaHasNot) {
  using Giver = Giver<TypeParam>;
  struct Case {
    std::function<void(Giver&)> change;
    const char* says;
  } cases[] = {
      {[](Giver& g) { g.managed.dl_tensor.dtype.lanes = 4; }, "elements of 4 lanes; expected 1"},
      {[](Giver& g) { g.managed.dl_tensor.dtype = {1, 16, 1}; }, "a dtype of code 1 and 16 bits"},
      {[](Giver& g) { g.managed.dl_tensor.dtype = {3, 64, 1}; }, "a dtype of code 3 and 64 bits"},
      {[](Giver& g) { g.managed.dl_tensor.device = {10, 0}; },
       "a device of DLPack's type 10; Brasa knows 1 (cpu), 2 (cuda)"},
      {[](Giver& g) { g.managed.dl_tensor.device = {0, 0}; }, "a device of DLPack's type 0"},
      {[](Giver& g) { g.managed.dl_tensor.device = {1, 1}; }, "device 'cpu:1' is not there"},
      {[](Giver& g) { g.managed.dl_tensor.device = {1, -1}; }, "device 'cpu:-1' is not there"},
      {[](Giver& g) { g.managed.dl_tensor.device = {1, 256}; }, "device 'cpu:256' is not there"},
      {[](Giver& g) { g.strides[1] = -4; }, "a negative stride in [12, -4, 1]"},
      {[](Giver& g) { g.shape[2] = -1; }, "a negative size in [2, 3, -1]"},
      {[](Giver& g) { g.managed.dl_tensor.ndim = -1; }, "-1 dimensions"},
      {[](Giver& g) { g.managed.dl_tensor.shape = nullptr; }, "3 dimensions without their sizes"},
      {[](Giver& g) { g.managed.dl_tensor.data = nullptr; }, "float32[2, 3, 4] at a null pointer"},
      {[](Giver& g) { g.managed.dl_tensor.byte_offset = 2; }, "not aligned for float32"},
      {[](Giver& g) { g.shape[0] = INT64_MAX; }, "does not fit into 64 bits"},
  };
  for (const Case& c : cases) {
    Giver giver;
    c.change(giver);
    expect_error(error_of([&] { from_dlpack(&giver.managed); }), c.says);
    EXPECT_EQ(giver.deleted, 0) << c.says;
  }
  expect_error(error_of([] { from_dlpack(static_cast<TypeParam*>(nullptr)); }), "a null pointer");
}

TYPED_TEST(DLPack, WhatCannotBeGiven) {
  auto error = [](const Tensor& x) { return error_of([&] { to_dlpack<TypeParam>(x); }); };
  expect_error(error(Tensor()), "the tensor is undefined");
  expect_error(error(rand({2}).requires_grad_()), "requires a gradient");
  expect_error(error(eye(2).cpu().to_sparse()), "a sparse tensor");
}

TEST(DLPackVersions, AnotherMajorVersionIsRefused) {
  Giver<ManagedTensorVersioned> giver;
  giver.managed.version = {1, 9};
  EXPECT_EQ(from_dlpack(&giver.managed).numel(), 24);
  giver.managed.version = {2, 0};
  expect_error(error_of([&] { from_dlpack(&giver.managed); }), "version 2.0 of DLPack; expected 1.x");
  EXPECT_EQ(giver.deleted, 1);
  auto* m = to_dlpack(rand({2}).cpu());
  EXPECT_EQ(m->version.major, 1u);
  EXPECT_EQ(m->flags, 0u);
  m->deleter(m);
}

TEST(DLPackReadOnly, IsCopiedAndSaid) {
  Giver<ManagedTensorVersioned> giver;
  giver.managed.flags = dlpack::kReadOnly;
  Tensor x = from_dlpack(&giver.managed);
  EXPECT_EQ(giver.deleted, 1);
  x.add_(1);
  EXPECT_EQ(x.sum().item<float>(), 300);
  EXPECT_EQ(giver.values[0], 0);

  auto* m = to_dlpack(rand({2}).cpu(), {.read_only = true});
  EXPECT_EQ(m->flags, dlpack::kReadOnly);
  m->deleter(m);
  expect_error(error_of([] { to_dlpack<ManagedTensor>(rand({2}).cpu(), {.read_only = true}); }),
               "cannot say that it is read-only");
}

TEST(DLPackDevices, AddressAndNumberOfADevice) {
  Device device("emu:1");
  Tensor x = arange(6, TensorOptions(kFloat32).device(device));
  auto* m = to_dlpack(x.slice(0, 2));
  EXPECT_EQ(m->dl_tensor.device.device_type, 12);
  EXPECT_EQ(m->dl_tensor.device.device_id, 1);
  Tensor y = from_dlpack(m);
  EXPECT_EQ(y.device(), device);
  EXPECT_EQ(y.sum().item<float>(), 14);
  y.add_(1);
  EXPECT_EQ(x.cpu().sum().item<float>(), 19);
}

// The device's work is late: memory goes back to its owner when that is done.
TEST(DLPackDevices, MemoryGoesBackWhenTheDeviceIsDone) {
  Device device("emu:0");
  Tensor memory = zeros({1000}, TensorOptions(kFloat32).device(device));
  size_t waiting = 1;
  int64_t size = 1000;
  ManagedTensorVersioned m{};
  m.version = {1, 0};
  m.manager_ctx = &waiting;
  m.deleter = [](ManagedTensorVersioned* self) { *static_cast<size_t*>(self->manager_ctx) = runtime::emu::waiting(0); };
  m.dl_tensor = {memory.data_ptr(), {12, 0}, 1, {2, 32, 1}, &size, nullptr, 0};
  Tensor x = from_dlpack(&m);
  for (int i = 0; i < 50; ++i) x.add_(1);
  EXPECT_GT(runtime::emu::waiting(0), 0u);
  x.reset();
  EXPECT_EQ(waiting, 0u);
  EXPECT_EQ(memory[999].item<float>(), 50);
}

}  // namespace
}  // namespace brasa
