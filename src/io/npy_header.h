#pragma once

#include <brasa/dtype.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace brasa::io {

/// What a `.npy` file says of its array.
struct NpyHeader {
  std::string format;          // the file's dtype: "<f4"; of a structured one the list of its fields
  std::optional<DType> dtype;  // empty for what Brasa has not
  bool swapped = false;        // numbers have their most significant byte first
  bool fortran_order = false;
  std::vector<int64_t> shape;
  std::span<const std::byte> data;  // all that follows
};

/// Whether it begins as a `.npy` file does.
bool looks_like_npy(std::span<const std::byte> bytes);
/// brasa::Error for a header that breaks the format. Takes time and memory in proportion to it; the data is not looked at.
NpyHeader parse_npy_header(std::span<const std::byte> bytes, const std::string& source);
/// The bytes before the data, 64 or a multiple. Version 1.0. brasa::Error that begins with `where` for what NumPy has not.
std::string npy_header(DType dtype, std::span<const int64_t> shape, bool fortran_order, const std::string& where);
/// A file's dtype by NumPy's name, "uint16", with why it is not read.
std::string name_of_npy_format(const std::string& format);

}  // namespace brasa::io
