#pragma once

#include <string>

#include <brasa/factories.h>
#include <brasa/serialize/archive.h>

// Options in an archive: tensors of no dimension, float64.
namespace brasa::optim {

inline void write_number(serialize::OutputArchive& archive, const std::string& key, double value) {
  archive.write(key, scalar_tensor(value, kFloat64));
}

inline double read_number(serialize::InputArchive& archive, const std::string& key) {
  Tensor t;
  archive.read(key, t);
  return t.item<double>();
}

}  // namespace brasa::optim
