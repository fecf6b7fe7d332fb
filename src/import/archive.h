#pragma once

#include <map>
#include <string>
#include <vector>

#include <brasa/tensor.h>

namespace brasa::import {

/// A `.pt2` archive's parts, whichever of its forms it has: that of PyTorch 2.9 and later with a record for each tensor, that of 2.8
/// with the tensors as checkpoints, that of 2.6 and 2.7 without folders.
struct Archive {
  std::string program;         // JSON
  std::string example_inputs;  // a checkpoint, of which nothing is read; may be empty
  /// In the file's order. Tensors that were one, such as a tied weight, are one.
  std::vector<std::pair<std::string, Tensor>> weights, constants;
};

/// brasa::Error for a file that is no such archive or is malformed. Without `tensors` only the program is read.
Archive read_archive(const std::string& path, bool tensors = true);

/// A tensor as a record of an archive: row-major, of the CPU.
struct Record {
  std::string name;
  Tensor tensor;
  bool parameter = false;
};
/// Writes an archive in the form of PyTorch 2.15. `example_inputs` is a checkpoint.
void write_archive(const std::string& path, const std::string& program, const std::vector<Record>& weights,
                   const std::vector<Record>& constants, const std::string& example_inputs);

}  // namespace brasa::import
