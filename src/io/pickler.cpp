#include "io/pickler.h"

#include <cstring>

#include <brasa/brasa.h>

#include "io/big_int.h"
#include "support/error.h"
#include "support/fresh_stack.h"

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
  with_room([&] { body(v, depth); });
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
    case Kind::Constant:
      if (!is_layout(v.text())) return global("torch", v.text());
      global("torch.serialization", "_get_layout");
      text("torch." + v.text());
      byte(0x85);
      return byte('R');
    case Kind::List: return list(v, depth);
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
    case Kind::Counter:
      global("collections", "Counter");
      byte('}');
      pairs(v.pairs(), depth);
      byte(0x85);
      return byte('R');
    case Kind::Tensor: return tensor(v.stored());
    case Kind::Storage: {
      Tensor t = on_host(v.stored().tensor);
      BRASA_CHECK(t.is_contiguous() && t.storage_offset() == 0 && t.nbytes() == t.storage().nbytes(),
                  "checkpoint: a storage is written with all its elements");
      storage(storage_of(t, stored_of(v.stored())));
      return;
    }
    case Kind::Object: {
      BRASA_CHECK(script_, "checkpoint: an object of class ", v.text(), " cannot be written");
      global(v.text());
      byte(')');
      byte(0x81);
      byte('}');
      pairs(v.pairs(), depth);
      return byte('b');
    }
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

void Pickler::list(const Value& v, int depth) {
  std::string_view function;
  for (const auto& [name, element] : kScriptLists)
    if (script_ && element == v.element_kind()) function = name;
  if (!function.empty()) global(std::string(function));
  byte(']');
  items(v.items(), depth, "e");
  if (function.empty()) return;
  byte(0x85);
  byte('R');
}

void Pickler::global(const std::string& full) {
  size_t dot = full.rfind('.');
  global(full.substr(0, dot), full.substr(dot + 1));
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

}  // namespace brasa::io
