#include <brasa/brasa.h>

#include <algorithm>
#include <cstring>

#include "io/unpickler.h"
#include "support/error.h"
#include "tensor/geometry.h"

// Tensors: what the functions that rebuild them are called with, and the tensors themselves once their storages are there.
namespace brasa::io {

using pickle::Value;

namespace {

// Rows of the elements, conjugate or negative or both. By bytes: an operator might have to be compiled first.
Tensor with_signs(const Tensor& t, bool conjugate, bool negative) {
  auto width = static_cast<size_t>(size_of(t.scalar_type()));
  size_t parts = is_complex(t.scalar_type()) ? 2 : 1, part = width / parts;
  StorageRef storage(Storage::make(static_cast<size_t>(t.numel()) * width));
  auto* to = static_cast<unsigned char*>(storage->data());
  const auto* from = static_cast<const unsigned char*>(t.const_data_ptr());
  std::vector<int64_t> at(static_cast<size_t>(t.dim()), 0);
  int64_t offset = 0;
  for (int64_t n = t.numel(); n > 0; --n, to += width) {
    std::memcpy(to, from + offset * static_cast<int64_t>(width), width);
    for (size_t i = 0; i < parts; ++i)
      if (negative != (conjugate && i == 1)) to[i * part + part - 1] ^= 0x80;  // the sign's bit
    for (size_t d = at.size(); d-- > 0;) {
      offset += t.stride(static_cast<int64_t>(d));
      if (++at[d] < t.size(static_cast<int64_t>(d))) break;
      offset -= at[d] * t.stride(static_cast<int64_t>(d));
      at[d] = 0;
    }
  }
  Sizes sizes{std::span<const int64_t>(t.sizes().data(), t.sizes().size())};
  return make_tensor(storage, t.scalar_type(), sizes, row_major_strides(t.sizes()), 0);
}

template <class T>
Tensor one_number(T v) {
  DType dtype = std::is_same_v<T, double> ? kFloat64 : kInt64;
  return make_tensor(storage_of(std::as_bytes(std::span(&v, 1))), dtype, {}, {}, 0);
}

}  // namespace

Unpickler::Node* Unpickler::tensor(const std::string& name, Arguments a) {
  std::string_view last = std::string_view(name).substr(name.rfind('.') + 1);
  if (last == "_rebuild_parameter" || last == "_rebuild_parameter_with_state") return parameter(name, a);
  if (last.starts_with("_rebuild_tensor")) return plain_tensor(name, a);
  if (last == "_rebuild_qtensor") return quantized_tensor(a);
  if (last == "_rebuild_sparse_tensor") return sparse_tensor(a);
  if (last == "_rebuild_device_tensor_from_cpu_tensor") return copied_tensor(a);
  if (last == "_rebuild_meta_tensor_no_storage") error("a tensor on the device 'meta', which has no elements");
  return nullptr;
}

Unpickler::Node* Unpickler::make(TensorRecord record) {
  Node* n = make(Type::Tensor);
  n->index = static_cast<uint32_t>(tensors_.size());
  tensors_.push_back(std::move(record));
  return n;
}

// (storage, offset, sizes, strides, …)
Unpickler::TensorRecord Unpickler::record(Arguments a, std::optional<StoredDType> dtype) {
  if (!dtype) error("a tensor without a dtype");
  TensorRecord out;
  out.storage = a[0]->index;
  out.placement = {*dtype, int_of(a[1], "a storage offset"), ints_of(a[2], "sizes"), ints_of(a[3], "strides")};
  return out;
}

// (storage, offset, sizes, strides[, requires_grad, hooks[, dtype][, metadata]])
Unpickler::Node* Unpickler::plain_tensor(const std::string& name, Arguments a) {
  bool v1 = name.ends_with("_tensor"), v3 = name.ends_with("_v3");
  size_t least = v1 ? 4 : v3 ? 7 : 6;
  if (a.size() < least || a.size() > (v1 ? least : least + 1)) error(str(a.size(), " arguments for '", name, "'"));
  if (a[0]->type != Type::Storage) error("a tensor without a storage");
  std::optional<StoredDType> dtype = storage_dtypes_[a[0]->index];
  if (v3) {
    if (a[6]->type != Type::Leaf || a[6]->leaf.kind() != Value::Kind::DType) error("a tensor without a dtype");
    dtype = stored_dtype(a[6]->leaf.text());
  }
  TensorRecord t = record(a, dtype);
  if (dtype->quantized()) error(str("a tensor of ", dtype->name, " without scales"));
  t.requires_grad = !v1 && bool_of(a[4], "requires_grad");
  // Facts about a view; None or a dictionary.
  const Node* facts = a.size() > least ? a.back() : nullptr;
  if (facts && facts->type != Type::Dict && !(facts->type == Type::Leaf && facts->leaf.is_none()))
    error("a tensor's metadata is no dictionary");
  for (size_t i = 0; facts && i < facts->items.size(); i += 2) {
    const std::string& fact = string_of(facts->items[i], "a tensor's metadata");
    if (fact != "conj" && fact != "neg") error(str("a tensor with the metadata '", fact, "'"));
    (fact == "conj" ? t.conjugate : t.negative) = bool_of(facts->items[i + 1], "a tensor's metadata");
  }
  return make(std::move(t));
}

// (storage, offset, sizes, strides, (scheme, scales, zero points[, axis]), requires_grad, hooks)
Unpickler::Node* Unpickler::quantized_tensor(Arguments a) {
  if (a.size() != 7) error(str(a.size(), " arguments for a quantised tensor"));
  if (a[0]->type != Type::Storage) error("a tensor without a storage");
  TensorRecord t = record(a, storage_dtypes_[a[0]->index]);
  if (!t.placement.dtype.quantized()) error(str("a quantised tensor of ", t.placement.dtype.name));
  if (a[4]->type != Type::Tuple || a[4]->items.size() < 3) error("a quantised tensor without scales");
  if (bool_of(a[5], "requires_grad")) error("a quantised tensor that requires a gradient");
  t.quantizer = a[4];
  return make(std::move(t));
}

namespace {

// Compressed columns, and rows or columns of blocks, which come as coordinates.
bool is_expanded(std::string_view layout) {
  return layout == "sparse_csc" || layout == "sparse_bsr" || layout == "sparse_bsc";
}

std::vector<int64_t> integers(const Tensor& t, const char* what) {
  BRASA_CHECK(t.dim() == 1 && (t.scalar_type() == kInt64 || t.scalar_type() == kInt32), "expected ", what,
              " as a vector of int64 or int32, got ", name(t.scalar_type()), t.sizes());
  std::vector<int64_t> out;
  const auto* from = static_cast<const char*>(t.const_data_ptr());
  for (int64_t i = 0; i < t.size(0); ++i) {
    const char* at = from + i * t.stride(0) * t.element_size();
    int32_t narrow = 0;
    int64_t wide = 0;
    if (t.scalar_type() == kInt64)
      std::memcpy(&wide, at, sizeof wide);
    else
      std::memcpy(&narrow, at, sizeof narrow), wide = narrow;
    out.push_back(wide);
  }
  return out;
}

// `compressed` and `plain` are of the entries, or of the blocks that `values` has. No operators, which might have to be compiled first.
Tensor expanded(std::string_view layout, const Tensor& compressed, const Tensor& plain, const Tensor& values,
                const std::vector<int64_t>& sizes) {
  bool columns = layout.ends_with('c'), blocks = layout != "sparse_csc";
  BRASA_CHECK(sizes.size() == 2 && values.dim() == (blocks ? 3 : 1), "expected a matrix and values of ",
              blocks ? "blocks" : "entries", ", got sizes ", sizes, " and values ", values.sizes());
  int64_t high = blocks ? values.size(1) : 1, wide = blocks ? values.size(2) : 1, count = values.size(0);
  BRASA_CHECK(high > 0 && wide > 0 && sizes[0] % high == 0 && sizes[1] % wide == 0, "blocks of ", high, " × ", wide,
              " do not fill a matrix of sizes ", sizes);
  int64_t lines = sizes[0] / high, across = sizes[1] / wide;
  if (columns) std::swap(lines, across);
  std::vector<int64_t> ends = integers(compressed, "compressed indices"), places = integers(plain, "indices");
  BRASA_CHECK(lines >= 0 && static_cast<int64_t>(ends.size()) - 1 == lines && ends[0] == 0 && ends.back() == count &&
                  static_cast<int64_t>(places.size()) == count && std::is_sorted(ends.begin(), ends.end()),
              "its compressed indices do not go with ", lines, " lines and ", count, " values");
  struct Entry {
    int64_t row, column, from;
    bool operator<(const Entry& o) const { return row != o.row ? row < o.row : column < o.column; }
  };
  std::vector<Entry> entries;
  for (int64_t line = 0; line < lines; ++line)
    for (int64_t k = ends[line]; k < ends[line + 1]; ++k) {
      BRASA_CHECK(places[k] >= 0 && places[k] < across && (k == ends[line] || places[k - 1] < places[k]),
                  "its indices in line ", line, " do not ascend from 0 to ", across - 1);
      int64_t row = (columns ? places[k] : line) * high, column = (columns ? line : places[k]) * wide;
      for (int64_t i = 0; i < high; ++i)
        for (int64_t j = 0; j < wide; ++j)
          entries.push_back(
              {row + i, column + j, k * values.stride(0) + (blocks ? i * values.stride(1) + j * values.stride(2) : 0)});
    }
  std::sort(entries.begin(), entries.end());
  auto n = static_cast<int64_t>(entries.size()), width = values.element_size();
  Tensor indices = empty({2, n}, TensorOptions(kInt64).device(kCPU));
  Tensor items = empty({n}, TensorOptions(values.scalar_type()).device(kCPU));
  const auto* from = static_cast<const char*>(values.const_data_ptr());
  for (int64_t i = 0; i < n; ++i) {
    indices.data_ptr<int64_t>()[i] = entries[i].row;
    indices.data_ptr<int64_t>()[n + i] = entries[i].column;
    std::memcpy(static_cast<char*>(items.data_ptr()) + i * width, from + entries[i].from * width,
                static_cast<size_t>(width));
  }
  return sparse_coo_tensor(indices, items, sizes, {}, true);
}

}  // namespace

// (layout, (indices, values, sizes[, coalesced])) or (layout, (rows, columns, values, sizes)); where columns are compressed, they are first
Unpickler::Node* Unpickler::sparse_tensor(Arguments a) {
  if (a.size() != 2 || a[0]->type != Type::Leaf || a[0]->leaf.kind() != Value::Kind::Constant ||
      a[1]->type != Type::Tuple)
    error("a sparse tensor without a layout and its parts");
  const std::string& layout = a[0]->leaf.text();
  bool coordinates = layout == "sparse_coo";
  if (!coordinates && layout != "sparse_csr" && !is_expanded(layout))
    error(str("a tensor of layout ", layout, ", which Brasa has not"));
  size_t parts = a[1]->items.size();
  if (parts != 4 && !(coordinates && parts == 3)) error(str("a sparse tensor of ", parts, " parts"));
  TensorRecord t;
  t.sparse = make(Type::Tuple);
  t.sparse->items = {a[0], a[1]};
  return make(std::move(t));
}

// (tensor, dtype, device, requires_grad), of devices whose memory PyTorch copies first.
Unpickler::Node* Unpickler::copied_tensor(Arguments a) {
  if (a.size() != 4 || a[0]->type != Type::Tensor) error("a device's tensor without its copy");
  TensorRecord t = tensors_[a[0]->index];
  if (a[1]->type != Type::Leaf || a[1]->leaf.kind() != Value::Kind::DType ||
      a[1]->leaf.text() != t.placement.dtype.name)
    error("a device's tensor whose copy is of another dtype");
  t.requires_grad = bool_of(a[3], "requires_grad");
  return make(std::move(t));
}

// (tensor, requires_grad, hooks[, state])
Unpickler::Node* Unpickler::parameter(const std::string& name, Arguments a) {
  if (a.size() < 3 || a.size() > 4) error(str(a.size(), " arguments for '", name, "'"));
  if (a[0]->type != Type::Tensor) error("a parameter that is no tensor");
  TensorRecord t = tensors_[a[0]->index];
  t.requires_grad = bool_of(a[1], "requires_grad");
  t.parameter = true;
  return make(std::move(t));
}

Value Unpickler::frozen_storage(uint32_t index) {
  StoredDType dtype = storage_dtypes_[index].value_or(*stored_dtype("uint8"));
  int64_t elements = static_cast<int64_t>(storages_[index].bytes) / size_of(dtype.as);
  Tensor all = tensor_in((*values_)[index], {dtype, 0, {elements}, {1}}, options_.source + ": a storage");
  return Value::storage({all, std::string(dtype.name)});
}

Value Unpickler::frozen_tensor(const TensorRecord& t, int depth) {
  std::string where = options_.source + ": a tensor";
  Tensor tensor = t.sparse ? sparse_of(t, depth) : tensor_in((*values_)[t.storage], t.placement, where);
  Value::StoredTensor out{tensor, std::string(t.sparse ? name(tensor.scalar_type()) : t.placement.dtype.name),
                          t.parameter};
  if (t.conjugate || t.negative) {
    // Its elements are copied, so that there may be no more of them than in the file.
    DType dtype = tensor.scalar_type();
    if (tensor.numel() > static_cast<int64_t>((*values_)[t.storage]->bytes()) / size_of(dtype))
      error("a conjugate or negative view that is larger than its storage");
    bool signs = t.conjugate ? is_complex(dtype) : is_complex(dtype) || is_floating(dtype);
    if (!signs || out.dtype != name(dtype)) error(str("a conjugate or negative view of dtype ", out.dtype));
    out.tensor = tensor = with_signs(tensor, t.conjugate, t.negative);
  }
  if (t.quantizer) out.quantizer = quantizer_of(t, depth);
  if (t.requires_grad) {
    DType dtype = tensor.scalar_type();
    if ((!is_floating(dtype) && !is_complex(dtype)) || out.dtype != name(dtype))
      error("a tensor of integers that requires a gradient");
    tensor.set_requires_grad(true);
  }
  return Value::stored(std::move(out));
}

// A part of a sparse or quantised tensor, of which copies are made: no larger than what the file has of it.
Tensor Unpickler::part_of(Node* n, const char* what, int depth) {
  if (n->type != Type::Tensor || tensors_[n->index].sparse) error(str(what, " that are no tensor"));
  const TensorRecord& t = tensors_[n->index];
  Tensor tensor = freeze(n, depth).to_tensor();
  if (tensor.numel() > static_cast<int64_t>((*values_)[t.storage]->bytes()) / size_of(t.placement.dtype.as))
    error(str(what, " that are larger than their storage"));
  return tensor;
}

Tensor Unpickler::sparse_of(const TensorRecord& t, int depth) {
  const auto& parts = t.sparse->items[1]->items;
  const std::string& layout = t.sparse->items[0]->leaf.text();
  try {
    if (is_expanded(layout))
      return expanded(layout, part_of(parts[0], "compressed indices", depth), part_of(parts[1], "indices", depth),
                      part_of(parts[2], "values", depth), ints_of(parts[3], "sizes"));
    if (layout == "sparse_csr")
      return sparse_csr_tensor(part_of(parts[0], "rows", depth), part_of(parts[1], "columns", depth),
                               part_of(parts[2], "values", depth), ints_of(parts[3], "sizes"));
    std::optional<bool> coalesced;
    if (parts.size() == 4 && !(parts[3]->type == Type::Leaf && parts[3]->leaf.is_none()))
      coalesced = bool_of(parts[3], "is_coalesced");
    return sparse_coo_tensor(part_of(parts[0], "indices", depth), part_of(parts[1], "values", depth),
                             ints_of(parts[2], "sizes"), {}, coalesced);
  } catch (const Error& e) {
    if (std::string_view(e.what()).starts_with(options_.source)) throw;
    error(str("a sparse tensor: ", e.what()));
  }
}

Value::Quantizer Unpickler::quantizer_of(const TensorRecord& t, int depth) {
  const auto& q = t.quantizer->items;
  bool is_constant = q[0]->type == Type::Leaf && q[0]->leaf.kind() == Value::Kind::Constant;
  std::string scheme = is_constant ? q[0]->leaf.text() : "";
  if (scheme == "per_tensor_affine" && q.size() == 3) {
    if (q[1]->type != Type::Leaf || q[1]->leaf.kind() != Value::Kind::Float) error("a scale that is no float");
    return {one_number(q[1]->leaf.to_double()), one_number(int_of(q[2], "a zero point")), {}};
  }
  if (scheme != "per_channel_affine" || q.size() != 4)
    error(str("quantised by the scheme '", scheme, "', which is not known"));
  int64_t axis = int_of(q[3], "an axis");
  const auto& sizes = t.placement.sizes;
  if (axis < 0 || axis >= static_cast<int64_t>(sizes.size())) error("scales along an axis that there is not");
  Tensor scale = part_of(q[1], "scales", depth), zero_point = part_of(q[2], "zero points", depth);
  std::vector<int64_t> wanted{sizes[static_cast<size_t>(axis)]};
  if (scale.sizes().vec() != wanted || zero_point.sizes().vec() != wanted)
    error("not one scale for each index of its axis");
  if (scale.scalar_type() != kFloat64 || zero_point.scalar_type() != kInt64)
    error("scales or zero points of another dtype");
  return {scale, zero_point, axis};
}

}  // namespace brasa::io
