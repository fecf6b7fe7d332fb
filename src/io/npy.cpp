#include <brasa/npy.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include <brasa/brasa.h>

#include "io/npy_header.h"
#include "io/stored_tensor.h"
#include "io/zip.h"
#include "support/error.h"
#include "support/mapped_file.h"
#include "support/output_file.h"
#include "tensor/geometry.h"

namespace brasa::io {
namespace {

constexpr std::string_view kEnd = ".npy";  // of an archive's records

std::span<const int64_t> reversed(Sizes& out, std::span<const int64_t> sizes) {
  out.assign(sizes.data(), sizes.size());
  std::reverse(out.begin(), out.end());
  return out;
}

// Each number's bytes in the other order; a complex number is two.
void swap_bytes(std::byte* data, size_t bytes, DType dtype) {
  auto width = static_cast<size_t>(size_of(real_part_of(dtype)));
  for (std::byte* p = data; p != data + bytes; p += width) std::reverse(p, p + width);
}

// On the bytes themselves where `owner` keeps them, which then change if their order is the other.
Tensor read_array(std::span<const std::byte> bytes, const std::string& source,
                  const std::shared_ptr<const void>& owner = nullptr) {
  BRASA_CHECK(!looks_like_zip(bytes), source, ": it begins as a zip archive, which load_npz reads");
  NpyHeader h = parse_npy_header(bytes, source);
  BRASA_CHECK(
      h.dtype, source, ": dtype '", h.format, "' (", name_of_npy_format(h.format),
      ") cannot be read; expected bool, int8 to int64, uint8, uint64, float16 to float64, complex64 or complex128");
  int64_t size = size_of(*h.dtype);
  bool overflow = false, empty = false;
  for (int64_t n : h.shape) {
    overflow |= __builtin_mul_overflow(size, std::max<int64_t>(n, 1), &size);
    empty |= n == 0;
  }
  BRASA_CHECK(!overflow, source, ": ", name(*h.dtype), h.shape, " does not fit into memory");
  if (empty) size = 0;
  BRASA_CHECK(static_cast<uint64_t>(size) == h.data.size(), source, ": ", name(*h.dtype), h.shape, " takes ", size,
              " bytes, ", h.data.size(), " follow the header");

  StorageRef storage = storage_of(h.data, owner);
  if (h.swapped) swap_bytes(static_cast<std::byte*>(storage->data()), h.data.size(), *h.dtype);
  Sizes sizes(std::span<const int64_t>(h.shape)), other;
  Sizes strides = row_major_strides(h.fortran_order ? reversed(other, sizes) : std::span<const int64_t>(sizes));
  if (h.fortran_order) std::reverse(strides.begin(), strides.end());
  return make_tensor(std::move(storage), *h.dtype, sizes, strides, 0);
}

// A tensor as a file has it: the header, then what `held` keeps.
struct Array {
  Tensor held;
  std::string header;
  std::span<const std::byte> bytes() const {
    return {static_cast<const std::byte*>(held.const_data_ptr()), held.nbytes()};
  }
};

Array array_of(const Tensor& tensor, const std::string& where) {
  BRASA_CHECK(tensor.defined(), where, ": the tensor is undefined");
  BRASA_CHECK(tensor.layout() == kStrided, where, ": a sparse tensor; to_dense() makes one that can be saved");
  Sizes sizes, strides, order;
  bool columns =
      !tensor.is_contiguous() && is_row_major(reversed(sizes, tensor.sizes()), reversed(strides, tensor.strides()));
  Tensor rows = tensor.detach();
  if (columns) {  // those of the transposed tensor, on any device
    for (int64_t d = tensor.dim(); d-- > 0;) order.push_back(d);
    rows = rows.permute(IntArrayRef(order.data(), order.size()));
  }
  Array out{rows.cpu().contiguous(), npy_header(tensor.scalar_type(), tensor.sizes(), columns, where)};
  return out;
}

void check_name(const std::string& name, const std::string& path) {
  BRASA_CHECK(name.find('\0') == name.npos, path, ": the name '", name.substr(0, name.find('\0')),
              "' goes on behind a NUL");
  try {
    nlohmann::json(name).dump();
  } catch (const nlohmann::json::exception& e) {
    fail(str(path, ": a name is not UTF-8: ", e.what()));
  }
}

ZipReader archive_in(std::span<const std::byte> bytes, const std::string& source) {
  BRASA_CHECK(!looks_like_npy(bytes), source, ": it is a single array, which load_npy reads");
  return ZipReader(bytes, source, ZipReader::Checksums::Compared);
}

// "weights.npz: 'w'"
std::string name_in(std::string_view record, const std::string& source) {
  BRASA_CHECK(record.ends_with(kEnd), source, ": record '", record, "' is no array: its name does not end in ", kEnd);
  return std::string(record.substr(0, record.size() - kEnd.size()));
}

std::string described(std::span<const std::byte> bytes, const std::string& source) {
  NpyHeader h = parse_npy_header(bytes, source);
  std::string kind = h.dtype ? std::string(name(*h.dtype)) : str("'", h.format, "'");
  return str(kind, h.shape, h.fortran_order ? ", in Fortran's order" : "",
             h.swapped ? ", most significant bytes first" : "",
             h.dtype ? "" : str(" (", name_of_npy_format(h.format), "), which cannot be read"), "\n");
}

}  // namespace

Tensor parse_npy(std::span<const std::byte> bytes, const std::string& source) { return read_array(bytes, source); }
Tensor load_npy(const std::string& path) { return parse_npy(map_file(path).bytes, path); }

TensorDict parse_npz(std::span<const std::byte> bytes, const std::string& source) {
  ZipReader zip = archive_in(bytes, source);
  TensorDict out;
  for (const std::string& record : zip.names()) {
    std::string name = name_in(record, source);
    auto inflated = std::make_shared<std::vector<std::byte>>();
    std::span<const std::byte> array = zip.read(record, *inflated);
    out.emplace(name, read_array(array, str(source, ": '", name, "'"), inflated->empty() ? nullptr : inflated));
  }
  return out;
}
TensorDict load_npz(const std::string& path) { return parse_npz(map_file(path).bytes, path); }

void save_npy(const Tensor& tensor, const std::string& path) {
  Array array = array_of(tensor, path);
  OutputFile file(path);
  file.write(array.header.data(), array.header.size());
  file.write(array.bytes().data(), array.bytes().size());
  file.commit();
}

void save_npz(const TensorDict& tensors, const std::string& path) {
  OutputFile file(path);
  ZipWriter zip([&](const void* data, size_t size) { file.write(data, size); });
  for (const auto& [name, tensor] : tensors) {
    check_name(name, path);
    Array array = array_of(tensor, str(path, ": '", name, "'"));
    zip.add(name + std::string(kEnd),
            {std::as_bytes(std::span(array.header.data(), array.header.size())), array.bytes()});
  }
  zip.finish();
  file.commit();
}

std::string describe_npy(const std::string& path) {
  MappedFile file = map_file(path);
  if (looks_like_npy(file.bytes)) return described(file.bytes, path);
  ZipReader zip = archive_in(file.bytes, path);
  std::string out = str("npz, ", zip.names().size(), " arrays\n");
  std::vector<std::byte> inflated;
  for (const std::string& record : zip.names()) {
    std::string name = name_in(record, path);
    out += str(name, "  ", described(zip.read(record, inflated), str(path, ": '", name, "'")));
  }
  return out;
}

}  // namespace brasa::io
