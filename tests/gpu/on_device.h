#pragma once

#include <gtest/gtest.h>

#include <string>

#include <brasa/brasa.h>

namespace brasa {

/// A test whose parameter names a device: an emulated GPU, and a GPU where there is one.
class OnDevice : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (GetParam() == std::string("cuda") && device_count(kCUDA) == 0) GTEST_SKIP() << "there is no GPU";
    device_ = Device(GetParam());
  }
  Device device_{kCPU};
};

}  // namespace brasa
