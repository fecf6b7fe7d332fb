#include <brasa/data/mnist.h>

#include <cstring>
#include <fstream>

#include <brasa/brasa.h>

#include "support/error.h"

namespace brasa::data::datasets {
namespace {

// An IDX file of bytes: two zeros, 8 for uint8, the number of dimensions, their sizes as big-endian 32-bit numbers, the elements
// (yann.lecun.com/exdb/mnist).
Tensor read_idx(const std::string& path, size_t rank) {
  std::ifstream file(path, std::ios::binary);
  BRASA_CHECK(file, "MNIST: cannot open ", path);
  auto number = [&] {
    unsigned char b[4] = {};
    file.read(reinterpret_cast<char*>(b), 4);
    BRASA_CHECK(file, "MNIST: ", path, " ends within its header");
    return int64_t{b[0]} << 24 | int64_t{b[1]} << 16 | int64_t{b[2]} << 8 | int64_t{b[3]};
  };
  int64_t expected = 0x800 + static_cast<int64_t>(rank), magic = number();
  BRASA_CHECK(magic == expected, "MNIST: ", path, " begins with ", magic, ", expected ", expected);
  std::vector<int64_t> sizes;
  for (size_t d = 0; d < rank; ++d) sizes.push_back(number());
  file.seekg(0, std::ios::end);
  int64_t have = static_cast<int64_t>(file.tellg()) - 4 * (1 + static_cast<int64_t>(rank)), want = 1;
  file.seekg(4 * (1 + static_cast<std::streamoff>(rank)));
  for (int64_t s : sizes) BRASA_CHECK(!__builtin_mul_overflow(want, s, &want), "MNIST: ", path, " is broken");
  BRASA_CHECK(have >= want, "MNIST: ", path, " has ", have, " elements, expected ", want);
  Tensor t = empty(sizes, TensorOptions(kUInt8).device(Device(kCPU)));
  file.read(static_cast<char*>(t.mutable_data_ptr()), want);
  return t;
}

}  // namespace

MNIST::MNIST(const std::string& root, Mode mode) : train_(mode == Mode::kTrain) {
  std::string begin = root + (train_ ? "/train" : "/t10k");
  images_ = read_idx(begin + "-images-idx3-ubyte", 3).unsqueeze(1).to(kFloat32).div(255);
  targets_ = read_idx(begin + "-labels-idx1-ubyte", 1).to(kInt64);
  BRASA_CHECK(images_.size(0) == targets_.size(0), "MNIST: ", root, " has ", images_.size(0), " images and ",
              targets_.size(0), " labels");
}
MNIST::~MNIST() = default;

Example<> MNIST::get(size_t index) {
  auto i = static_cast<int64_t>(index);
  return {images_[i], targets_[i]};
}
std::optional<size_t> MNIST::size() const { return static_cast<size_t>(images_.size(0)); }

}  // namespace brasa::data::datasets
