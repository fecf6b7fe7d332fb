#include "io/pickler.h"

#include <cstring>

#include <brasa/brasa.h>

#include "io/big_int.h"
#include "support/error.h"

namespace brasa::io {

using pickle::Value;

namespace {

constexpr int kMaxDepth = 1000;

}  // namespace

std::string Pickler::dump(const Value& v) {
  byte(0x80);
  byte(2);
  value(v, 0);
  byte('.');
  return std::move(out_);
}

void Pickler::value(const Value& v, int depth) {
  BRASA_CHECK(depth <= kMaxDepth, "checkpoint: containers nested deeper than ", kMaxDepth);
  auto known = memo_.find(v.identity());
  if (v.identity() && known != memo_.end()) {
    byte('j');
    return number(known->second);
  }
  body(v, depth);
  if (!v.identity()) return;
  // Values are made from the inside out, so that none is asked for before it is remembered.
  byte('r');
  number(remembered_);
  memo_[v.identity()] = remembered_++;
}

void Pickler::body(const Value& v, int depth) {
  using Kind = Value::Kind;
  switch (v.kind()) {
    case Kind::None: return byte('N');
    case Kind::Bool: return byte(v.to_bool() ? 0x88 : 0x89);
    case Kind::Int: return integer(v.to_int());
    case Kind::BigInt: {
      std::string bytes = twos_complement_of(v.text());
      BRASA_CHECK(bytes.size() <= UINT8_MAX, "checkpoint: an integer of ", v.text().size(), " digits");
      byte(0x8a);
      number(static_cast<uint8_t>(bytes.size()));
      out_ += bytes;
      return;
    }
    case Kind::Float: {
      double d = v.to_double();
      uint64_t bits;
      std::memcpy(&bits, &d, sizeof bits);
      byte('G');
      return number(__builtin_bswap64(bits));
    }
    case Kind::Complex:
      global("builtins", "complex");
      body(v.to_complex().real(), depth);
      body(v.to_complex().imag(), depth);
      byte(0x86);
      return byte('R');
    case Kind::String: return text(v.text());
    case Kind::Bytes: {
      global("_codecs", "encode");
      std::string utf8;
      for (char c : v.text()) {
        auto u = static_cast<unsigned char>(c);
        if (u >= 0x80) utf8 += static_cast<char>(0xc0 | u >> 6);
        utf8 += static_cast<char>(u < 0x80 ? u : 0x80 | (u & 0x3f));
      }
      text(utf8);
      text("latin1");
      byte(0x86);
      return byte('R');
    }
    case Kind::DType: return global("torch", v.text());
    case Kind::Device:
      global("torch", "device");
      text(v.text());
      byte(0x85);
      return byte('R');
    case Kind::List: byte(']'); return items(v.items(), depth, "e");
    case Kind::Tuple: return items(v.items(), depth, "t");
    case Kind::Set:
      global("builtins", "set");
      byte(']');
      items(v.items(), depth, "e");
      byte(0x85);
      return byte('R');
    case Kind::Size:
      global("torch", "Size");
      items(v.items(), depth, "t");
      byte(0x85);
      return byte('R');
    case Kind::Dict: byte('}'); return pairs(v.pairs(), depth);
    case Kind::OrderedDict:
      global("collections", "OrderedDict");
      byte(')');
      byte('R');
      return pairs(v.pairs(), depth);
    case Kind::Tensor: return tensor(v.stored());
    case Kind::Object: fail(str("checkpoint: an object of class ", v.text(), " cannot be written"));
  }
}

void Pickler::integer(int64_t v) {
  if (v >= INT32_MIN && v <= INT32_MAX) {
    byte('J');
    return number(static_cast<int32_t>(v));
  }
  byte(0x8a);
  byte(8);
  number(v);
}

void Pickler::text(const std::string& v) {
  BRASA_CHECK(v.size() <= UINT32_MAX, "checkpoint: a text of ", v.size(), " bytes");
  byte('X');
  number(static_cast<uint32_t>(v.size()));
  out_ += v;
}

void Pickler::tuple(IntArrayRef sizes) {
  byte('(');
  for (int64_t n : sizes) integer(n);
  byte('t');
}

void Pickler::global(const std::string& module, const std::string& name) {
  std::string both = module + "\n" + name + "\n";
  auto [at, fresh] = globals_.emplace(both, remembered_);
  if (!fresh) {
    byte('j');
    return number(at->second);
  }
  out_ += 'c' + both;
  byte('r');
  number(remembered_++);
}

void Pickler::items(const Value::Items& items, int depth, std::string_view opcode) {
  byte('(');
  for (const Value& item : items) value(item, depth + 1);
  out_ += opcode;
}

void Pickler::pairs(const Value::Pairs& pairs, int depth) {
  byte('(');
  for (const auto& [key, item] : pairs) {
    value(key, depth + 1);
    value(item, depth + 1);
  }
  byte('u');
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

// A tensor of its storage's dtype in the form that every PyTorch reads, another one in the form that names the dtype.
void Pickler::tensor(const Value::StoredTensor& s) {
  BRASA_CHECK(s.tensor.defined() && s.tensor.has_storage(), "checkpoint: only dense tensors can be written");
  auto dtype = stored_dtype(s.dtype);
  BRASA_CHECK(dtype && dtype->as == s.tensor.scalar_type(), "checkpoint: a tensor of ", name(s.tensor.scalar_type()),
              " cannot hold ", s.dtype);
  Tensor t = s.tensor.detach().cpu();
  t.const_data_ptr();  // What is still recorded is computed now.
  uint32_t key = storage_of(t, *dtype);
  std::string_view storage_class = storage_classes_[key];
  bool typed = storage_class == dtype->storage;

  if (s.parameter) {
    global("torch._utils", "_rebuild_parameter");
    byte('(');
  }
  global("torch._utils", typed ? "_rebuild_tensor_v2" : "_rebuild_tensor_v3");
  byte('(');
  byte('(');
  text("storage");
  global(storage_class == "UntypedStorage" ? "torch.storage" : "torch", std::string(storage_class));
  text(std::to_string(key));
  text("cpu");
  integer(static_cast<int64_t>(storages_[key]->bytes()) /
          (storage_class == "UntypedStorage" ? 1 : size_of(stored_dtype_of_storage(storage_class)->as)));
  byte('t');
  byte('Q');
  integer(t.storage_offset());
  tuple(t.sizes());
  tuple(t.strides());
  byte(s.tensor.requires_grad() && !s.parameter ? 0x88 : 0x89);
  global("collections", "OrderedDict");
  byte(')');
  byte('R');
  if (!typed) global("torch", s.dtype);
  byte('t');
  byte('R');
  if (!s.parameter) return;
  byte(s.tensor.requires_grad() ? 0x88 : 0x89);
  global("collections", "OrderedDict");
  byte(')');
  byte('R');
  byte('t');
  byte('R');
}

}  // namespace brasa::io
