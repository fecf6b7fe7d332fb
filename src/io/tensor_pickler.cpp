#include <brasa/brasa.h>

#include "io/pickler.h"
#include "support/error.h"

// How a pickle names tensors: calls of PyTorch's functions that rebuild them.
namespace brasa::io {

using pickle::Value;

Tensor Pickler::on_host(const Tensor& t) {
  BRASA_CHECK(t.defined() && t.has_storage(), "checkpoint: a tensor without memory of its own cannot be written");
  Tensor out = t.detach().cpu();
  out.const_data_ptr();  // What is still recorded is computed now.
  return out;
}

StoredDType Pickler::stored_of(const Value::StoredTensor& s) {
  auto dtype = stored_dtype(s.dtype);
  BRASA_CHECK(dtype && dtype->as == s.tensor.scalar_type() && dtype->quantized() == s.quantizer.has_value(),
              "checkpoint: a tensor of ", name(s.tensor.scalar_type()), " cannot hold ", s.dtype);
  return *dtype;
}

uint32_t Pickler::storage_of(const Tensor& t, const StoredDType& dtype) {
  const StorageRef& storage = impl_of(t)->storage;
  auto [at, fresh] = storage_index_.emplace(storage->root(), storages_.size());
  if (fresh) {
    bool whole = storage->bytes() % static_cast<size_t>(size_of(dtype.as)) == 0;
    storages_.push_back(storage);
    storage_classes_.push_back(whole && !dtype.storage.empty() ? dtype.storage : "UntypedStorage");
  }
  return at->second;
}

// The persistent id of a storage.
void Pickler::storage(uint32_t key) {
  std::string_view type = storage_classes_[key];
  bool untyped = type == "UntypedStorage";
  byte('(');
  text("storage");
  global(untyped ? "torch.storage" : "torch", std::string(type));
  text(std::to_string(key));
  text("cpu");
  integer(static_cast<int64_t>(storages_[key]->bytes()) / (untyped ? 1 : size_of(stored_dtype_of_storage(type)->as)));
  byte('t');
  byte('Q');
}

void Pickler::no_hooks() {
  global("collections", "OrderedDict");
  byte(')');
  byte('R');
}

void Pickler::tensor(const Value::StoredTensor& s) {
  if (s.parameter) {
    global("torch._utils", "_rebuild_parameter");
    byte('(');
  }
  if (s.tensor.is_sparse() || s.tensor.is_sparse_csr())
    sparse_tensor(s.tensor.detach());
  else
    dense_tensor(s);
  if (!s.parameter) return;
  byte(s.tensor.requires_grad() ? 0x88 : 0x89);
  no_hooks();
  byte('t');
  byte('R');
}

// A tensor of its storage's dtype in the form that every PyTorch reads, another one in the form that names the dtype.
void Pickler::dense_tensor(const Value::StoredTensor& s) {
  StoredDType dtype = stored_of(s);
  Tensor t = on_host(s.tensor);
  uint32_t key = storage_of(t, dtype);
  bool typed = storage_classes_[key] == dtype.storage;
  BRASA_CHECK(typed || !s.quantizer, "checkpoint: a quantised tensor on a storage of another dtype");
  global("torch._utils", s.quantizer ? "_rebuild_qtensor" : typed ? "_rebuild_tensor_v2" : "_rebuild_tensor_v3");
  byte('(');
  storage(key);
  integer(t.storage_offset());
  tuple(t.sizes());
  tuple(t.strides());
  if (s.quantizer) quantizer(*s.quantizer);
  byte(s.tensor.requires_grad() && !s.parameter ? 0x88 : 0x89);
  no_hooks();
  if (!typed) global("torch", s.dtype);
  byte('t');
  byte('R');
}

void Pickler::quantizer(const Value::Quantizer& q) {
  byte('(');
  global("torch", q.axis ? "per_channel_affine" : "per_tensor_affine");
  if (q.axis) {
    dense_tensor(Value(q.scale).stored());
    dense_tensor(Value(q.zero_point).stored());
    integer(*q.axis);
  } else {
    body(q.scale.item<double>(), 0);
    integer(q.zero_point.item<int64_t>());
  }
  byte('t');
}

void Pickler::sparse_tensor(const Tensor& t) {
  bool coordinates = t.is_sparse();
  global("torch._utils", "_rebuild_sparse_tensor");
  body(Value::constant(coordinates ? "sparse_coo" : "sparse_csr"), 0);
  byte('(');
  if (coordinates) {
    dense_tensor(Value(t._indices()).stored());
    dense_tensor(Value(t._values()).stored());
  } else {
    for (const Tensor& part : {t.crow_indices(), t.col_indices(), t.values()}) dense_tensor(Value(part).stored());
  }
  body(Value::size(t.sizes()), 0);
  if (coordinates) byte(t.is_coalesced() ? 0x88 : 0x89);
  byte('t');
  byte(0x86);
  byte('R');
}

}  // namespace brasa::io
