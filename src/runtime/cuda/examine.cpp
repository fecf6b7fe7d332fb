#include "runtime/cuda/examine.h"

#include <brasa/cuda.h>

#include <fstream>

#include "runtime/cuda/cublaslt.h"
#include "runtime/cuda/cudnn.h"
#include "runtime/cuda/device.h"
#include "runtime/cuda/driver.h"
#include "support/str.h"

namespace brasa::runtime::cuda {
namespace {

using State = Finding::State;

std::string place(const Library& library) {
  return library.handle ? str(library.path, " (", library.found_by, ")") : std::string();
}

// cuDNN says its version as 92600, cuBLASLt as 130100.
std::string version(size_t number, size_t major) {
  return str(number / major, '.', number % major / 100, '.', number % 100);
}

Finding driver_found() {
  Finding f{"cuda", "driver", State::Found, "", place(driver_library()), ""};
  if (!find_driver()) {
    bool there = driver_library().handle != nullptr;
    f.state = there ? State::Unusable : State::Missing;
    f.value = why_no_driver();
    f.advice =
        there
            ? "install a newer NVIDIA driver, and see whether nvidia-smi runs"
            : "on a machine with an NVIDIA GPU install its driver; in a container, start it with the GPU (--gpus all)";
    return f;
  }
  int number = 0;
  check(driver().get_version(&number), "cuDriverGetVersion");
  f.value = str("CUDA ", number / 1000, '.', number % 1000 / 10);
  std::ifstream file("/sys/module/nvidia/version");
  if (std::string kernel; file >> kernel) f.value += str(", NVIDIA ", kernel);
  return f;
}

void devices_found(std::vector<Finding>& findings) {
  int count = find_driver() ? kRow.count() : 0;
  if (count == 0)
    findings.push_back({"cuda", "devices", State::Missing, "none", "",
                        find_driver() ? "see whether nvidia-smi lists one, and what CUDA_VISIBLE_DEVICES hides"
                                      : "first install the driver"});
  for (int i = 0; i < count; ++i) {
    Finding f{"cuda", str("cuda:", i), State::Found, "", "", ""};
    try {
      Device& device = kRow.device(i);
      const Properties& p = device.properties();
      auto [free, whole] = device.memory();
      f.value = str(p.name, ", compute capability ", p.limits.major, '.', p.limits.minor, ", ", free >> 20, " of ",
                    whole >> 20, " MiB free, ", p.processors, " processors, code for ", p.code);
    } catch (const Error& e) {
      f.state = State::Unusable;
      f.value = e.what();
      f.advice = "Brasa needs a GPU of compute capability 7.0 or later that other programs leave memory on";
    }
    findings.push_back(std::move(f));
  }
}

Finding library_found(const char* name, const Library& library, size_t number, size_t major, std::string why_not,
                      const char* package, const char* without) {
  if (number) return {"cuda", name, State::Found, version(number, major), place(library), ""};
  return {"cuda",
          name,
          library.handle ? State::Unusable : State::Missing,
          std::move(why_not),
          place(library),
          str("pip install ", package, ", or name the folder of the library in BRASA_CUDA_LIBRARIES; ", without)};
}

}  // namespace

void examine(std::vector<Finding>& findings) {
  findings.push_back(driver_found());
  devices_found(findings);
  std::string why_not;
  have_products(&why_not);
  findings.push_back(library_found("cuBLASLt", products_library(), products_version(), 10000, why_not, "nvidia-cublas",
                                   "without it generated loops multiply matrices, slowly"));
  have_convolutions(&why_not);
  findings.push_back(library_found("cuDNN", convolutions_library(), convolutions_version(), 10000, why_not,
                                   "nvidia-cudnn-cu13", "without it generated loops convolve, slowly"));
}

}  // namespace brasa::runtime::cuda

namespace brasa::cuda {
bool cudnn_is_available() { return is_available() && runtime::cuda::convolutions_version() > 0; }
}  // namespace brasa::cuda
