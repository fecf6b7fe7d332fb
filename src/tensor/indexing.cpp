#include <brasa/factories.h>
#include <brasa/index.h>
#include <brasa/warning.h>

#include <algorithm>
#include <cstring>
#include <ostream>

#include "support/error.h"
#include "support/lazy.h"
#include "tensor/dispatch.h"
#include "tensor/masks.h"

// Python-style indexing: integers, slices and None become views; tensors become one gather or scatter.
namespace brasa {

namespace indexing {
TensorIndex::TensorIndex(const char* dots) : kind_(Kind::Ellipsis) {
  BRASA_CHECK(std::strcmp(dots, "...") == 0, "Expected \"...\" to represent an ellipsis index, but got \"", dots, "\"");
}

std::ostream& operator<<(std::ostream& out, const Slice& slice) {
  return out << slice.start() << ":" << slice.stop() << ":" << slice.step();
}
std::ostream& operator<<(std::ostream& out, const TensorIndex& index) {
  switch (index.kind()) {
    case TensorIndex::Kind::None: return out << "None";
    case TensorIndex::Kind::Ellipsis: return out << "...";
    case TensorIndex::Kind::Integer: return out << index.integer();
    case TensorIndex::Kind::Boolean: return out << std::boolalpha << index.boolean();
    case TensorIndex::Kind::Slice: return out << index.slice();
    case TensorIndex::Kind::Tensor: return out << index.tensor();
  }
  return out;
}
std::ostream& operator<<(std::ostream& out, const std::vector<TensorIndex>& indices) {
  out << "(";
  for (size_t i = 0; i < indices.size(); ++i) out << (i ? ", " : "") << indices[i];
  return out << ")";
}
}  // namespace indexing

namespace eager {

bool is_mask(const Tensor& index) { return index.scalar_type() == DType::Bool || index.scalar_type() == DType::UInt8; }

namespace {

// Every index is int64 or int32; a mask becomes the positions where it holds, or stays where bool ones are to be kept.
OptionalTensors positions(const Tensor& self, ArrayRef<std::optional<Tensor>> indices, bool keep_mask) {
  OptionalTensors out;
  int64_t covered = 0;  // dimensions of self
  for (const std::optional<Tensor>& given : indices) {
    if (!given || !given->defined()) {
      out.push_back(std::nullopt);
      ++covered;
      continue;
    }
    // Indices of the host go along with any tensor.
    Tensor index = given->device().is_cpu() ? moved(*given, impl_of(self)->device()) : *given;
    DType t = index.scalar_type();
    if (!is_mask(index)) {
      if (t != DType::Int64 && t != DType::Int32)
        fail_index("tensors used as indices must be long, int, byte or bool tensors");
      out.push_back(index);
      ++covered;
      continue;
    }
    if (t == DType::UInt8)
      Warning::warn({__func__, __FILE__, __LINE__},
                    "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.", false);
    for (int64_t d = 0; d < index.dim(); ++d)
      if (covered + d >= self.dim() || index.size(d) != self.size(covered + d))
        fail_index(str("The shape of the mask ", impl_of(index)->sizes, " at index ", d,
                       " does not match the shape of the indexed tensor ", impl_of(self)->sizes, " at index ",
                       covered + d));
    covered += index.dim();
    if (keep_mask && t == DType::Bool) {
      out.push_back(index);
      continue;
    }
    Tensor where = index.nonzero();
    for (int64_t d = 0; d < index.dim(); ++d) out.push_back(where.select(1, d));
  }
  if (covered > self.dim()) fail_index(str("too many indices for tensor of dimension ", self.dim()));
  return out;
}

}  // namespace

OptionalTensors read_positions(const Tensor& self, ArrayRef<std::optional<Tensor>> indices) {
  return positions(self, indices, false);
}

OptionalTensors written_positions(const Tensor& self, ArrayRef<std::optional<Tensor>> indices) {
  auto given = [](const std::optional<Tensor>& t) { return t && t->defined(); };
  return positions(self, indices, std::count_if(indices.begin(), indices.end(), given) == 1);
}

}  // namespace eager

namespace {

using eager::is_mask;
using eager::OptionalTensors;
using indexing::TensorIndex;

// How many dimensions it indexes.
int64_t covered(const Tensor& index) { return is_mask(index) ? index.dim() : 1; }

bool any_tensor(const OptionalTensors& indices) {
  return std::any_of(indices.begin(), indices.end(), [](auto& t) { return t.has_value(); });
}

// A 0-dimensional mask: true keeps everything under one more dimension, false nothing.
Tensor flag_index(bool keep, runtime::Device& device) {
  const int64_t one[] = {1};
  Tensor mask = make_tensor(one, DType::Bool, device);
  device.fill(impl_of(mask)->storage->data(), keep, 1, impl_of(mask)->storage->stream());
  return mask;
}

void check_can_be_indexed(const Tensor& t) {
  if (t.dim() == 0)
    fail_index("invalid index of a 0-dim tensor. Use tensor.item() to convert a 0-dim tensor to a number");
}

// Its element along a dimension, which goes away; `place` names it in the message.
Tensor element(const Tensor& t, int64_t dim, int64_t at, int64_t place) {
  int64_t size = t.size(dim);
  if (at < -size || at >= size)
    fail_index(str("index ", at, " is out of bounds for dimension ", place, " with size ", size));
  return t.select(dim, at);
}

// Applies what views can do; tensors are left for the caller, at the dimensions of the result that they index. A mask takes one place
// in the list however many dimensions it covers; `read_positions` spreads it.
Tensor apply_views(const Tensor& self, ArrayRef<TensorIndex> indices, OptionalTensors& tensors) {
  int64_t taken = 0;
  for (const TensorIndex& i : indices) {
    if (i.is_integer() || i.is_slice()) ++taken;
    if (i.is_tensor()) taken += covered(i.tensor());
  }
  if (taken > 0 && indices.size() == 1 && indices[0].is_integer()) check_can_be_indexed(self);
  if (taken > self.dim()) fail_index(str("too many indices for tensor of dimension ", self.dim()));

  Tensor result = self;
  int64_t dim = 0, hidden = 0;  // hidden: dimensions before this one that have no place in the list
  bool ellipsis = false;
  auto index_by = [&](const Tensor& t) {
    tensors.resize(static_cast<size_t>(dim - hidden));
    tensors.push_back(t);
    dim += covered(t);
    hidden += covered(t) - 1;
  };
  auto index_by_flag = [&](bool keep) {
    result = result.unsqueeze(dim);
    index_by(flag_index(keep, impl_of(self)->device()));
  };
  int64_t place = -1;  // of the index in self
  for (const TensorIndex& i : indices) switch (++place, i.kind()) {
      case TensorIndex::Kind::None: result = result.unsqueeze(dim++); break;
      case TensorIndex::Kind::Ellipsis:
        BRASA_CHECK(!ellipsis, "an index can only have a single ellipsis ('...')");
        ellipsis = true;
        dim += self.dim() - taken;
        break;
      case TensorIndex::Kind::Integer: result = element(result, dim, i.integer(), place); break;
      case TensorIndex::Kind::Slice: {
        const indexing::Slice& s = i.slice();
        if (s.step() <= 0) throw ValueError(str("step must be greater than zero, got ", s.step()));
        bool all = s.start() == 0 && s.stop() >= result.size(dim) && s.step() == 1;
        if (!all) result = result.slice(dim, s.start(), s.stop(), s.step());
        ++dim;
        break;
      }
      case TensorIndex::Kind::Boolean: index_by_flag(i.boolean()); break;
      case TensorIndex::Kind::Tensor:
        if (i.tensor().dim() > 0)
          index_by(i.tensor());
        else if (is_mask(i.tensor()))
          index_by_flag(i.tensor().item().toBool());
        else
          result = element(result, dim, i.tensor().item().toLong(), dim);
        break;
    }
  return result;
}

// A value for a place of these sizes: leading dimensions of size 1 beyond its rank fall away.
Tensor fitted_value(const Tensor& value, int64_t rank) {
  Tensor v = value;
  while (v.dim() > rank && v.size(0) == 1) v = v.squeeze(0);
  return v;
}

// Dimensions of place[tensors], where masks count as the one that they leave.
int64_t indexed_rank(const Tensor& place, const OptionalTensors& tensors) {
  int64_t rank = place.dim(), shape = 0;
  for (const auto& t : tensors)
    if (t) {
      rank -= covered(*t);
      shape = std::max<int64_t>(shape, is_mask(*t) ? 1 : t->dim());
    }
  return rank + shape;
}

void check_not_empty(ArrayRef<TensorIndex> indices, const char* method) {
  BRASA_CHECK(!indices.empty(), "Passing an empty index list to Tensor::", method, " is not valid syntax");
}

}  // namespace

Tensor Tensor::operator[](int64_t index) const {
  check_can_be_indexed(*this);
  if (index < -size(0) || index >= size(0))
    fail_index(str("select(): index ", index, " out of range for tensor of size ", sizes(), " at dimension 0"));
  return select(0, index);
}
Tensor Tensor::operator[](const Scalar& index) const {
  BRASA_CHECK(index.isIntegral(), "Can only index tensors with integral scalars");
  return (*this)[index.toLong()];
}
Tensor Tensor::operator[](const Tensor& index) const {
  BRASA_CHECK(index.defined() && index.dim() == 0, "Can only index with tensors that are scalars (zero-dim), got ",
              index);
  return (*this)[index.item()];
}

Tensor Tensor::index(ArrayRef<TensorIndex> indices) const {
  checked_impl(*this);
  check_not_empty(indices, "index()");
  OptionalTensors tensors;
  Tensor result = apply_views(*this, indices, tensors);
  if (any_tensor(tensors)) return result.index(ArrayRef<std::optional<Tensor>>(tensors));
  return result.is_same(*this) ? alias() : result;
}
Tensor Tensor::index(std::initializer_list<TensorIndex> indices) const { return index(ArrayRef<TensorIndex>(indices)); }
Tensor Tensor::index(ArrayRef<std::optional<Tensor>> indices) const {
  checked_impl(*this);
  OptionalTensors at = eager::read_positions(*this, indices);
  for (size_t d = 0; d < at.size(); ++d)
    if (at[d] && sizes()[d] == 0 && at[d]->numel() > 0) fail_index("index is out of bounds for dimension with size 0");
  static constinit Lazy<eager::Operator&> op([]() -> auto& { return eager::op("aten::index.Tensor"); });
  return eager::call_one(*op, {*this, ArrayRef<std::optional<Tensor>>(at)});
}

Tensor& Tensor::index_put_(ArrayRef<TensorIndex> indices, const Tensor& values) const {
  check_not_empty(indices, "index_put_()");
  OptionalTensors tensors;
  Tensor place = apply_views(*this, indices, tensors);
  if (any_tensor(tensors))
    place.index_put_(ArrayRef<std::optional<Tensor>>(tensors), fitted_value(values, indexed_rank(place, tensors)));
  else
    place.copy_(fitted_value(values, place.dim()));
  return const_cast<Tensor&>(*this);
}
Tensor& Tensor::index_put_(std::initializer_list<TensorIndex> indices, const Tensor& values) const {
  return index_put_(ArrayRef<TensorIndex>(indices), values);
}
Tensor& Tensor::index_put_(ArrayRef<TensorIndex> indices, const Scalar& value) const {
  return index_put_(indices, scalar_tensor(value, TensorOptions().dtype(scalar_type())));
}
Tensor& Tensor::index_put_(std::initializer_list<TensorIndex> indices, const Scalar& value) const {
  return index_put_(ArrayRef<TensorIndex>(indices), value);
}
Tensor& Tensor::index_put_(ArrayRef<std::optional<Tensor>> indices, const Tensor& values, bool accumulate) const {
  checked_impl(*this);
  OptionalTensors at = eager::written_positions(*this, indices);
  static constinit Lazy<eager::Operator&> op([]() -> auto& { return eager::op("aten::index_put"); });
  Tensor fitted = values.scalar_type() == scalar_type() ? values : values.to(scalar_type());
  return eager::call_in_place(*op, {*this, ArrayRef<std::optional<Tensor>>(at), fitted, accumulate}, *this);
}
Tensor& Tensor::index_put_(std::initializer_list<std::optional<Tensor>> indices, const Tensor& values,
                           bool accumulate) const {
  return index_put_(ArrayRef<std::optional<Tensor>>(indices), values, accumulate);
}
Tensor Tensor::index_put(ArrayRef<std::optional<Tensor>> indices, const Tensor& values, bool accumulate) const {
  Tensor out = clone();
  return out.index_put_(indices, values, accumulate);
}
Tensor Tensor::index_put(std::initializer_list<std::optional<Tensor>> indices, const Tensor& values,
                         bool accumulate) const {
  return index_put(ArrayRef<std::optional<Tensor>>(indices), values, accumulate);
}

Tensor& Tensor::fill_diagonal_(const Scalar& value, bool wrap) const {
  BRASA_CHECK(dim() >= 2, "dimensions must larger than 1");
  auto& self = const_cast<Tensor&>(*this);
  int64_t rows = size(0), columns = size(1);
  if (dim() > 2) {
    int64_t step = 0;
    for (int64_t d = 0; d < dim(); ++d) {
      BRASA_CHECK(size(d) == rows, "all dimensions of input must be of equal length");
      step += stride(d);
    }
    as_strided({rows}, {step}, storage_offset()).fill_(value);
    return self;
  }
  for (int64_t first = 0; first < rows; first += columns + 1) {
    narrow(0, first, std::min(columns, rows - first)).diagonal().fill_(value);
    if (!wrap) break;
  }
  return self;
}

}  // namespace brasa
