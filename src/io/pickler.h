#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include <brasa/pickle.h>

#include "io/script_lists.h"
#include "io/stored_tensor.h"

namespace brasa::io {

/// Writes a value as a pickle of protocol 2, as torch.save does: what was shared stays shared, and tensors name their storage by a key,
/// its number among `storages()`.
class Pickler {
 public:
  /// `script`: with objects of TorchScript's classes and its lists of one type.
  explicit Pickler(bool script = false) : script_(script) {}
  std::string dump(const pickle::Value& value);
  /// On the host, with what keeps them alive.
  const std::vector<StorageRef>& storages() const { return storages_; }

 private:
  void value(const pickle::Value& v, int depth);
  void body(const pickle::Value& v, int depth);
  void integer(int64_t v);
  void text(const std::string& v);
  void tuple(IntArrayRef sizes);
  void global(const std::string& module, const std::string& name);
  void global(const std::string& full);
  void list(const pickle::Value& v, int depth);
  void items(const pickle::Value::Items& items, int depth, std::string_view opcode);
  void pairs(const pickle::Value::Pairs& pairs, int depth);
  // Tensors (tensor_pickler.cpp).
  void tensor(const pickle::Value::StoredTensor& t);
  void dense_tensor(const pickle::Value::StoredTensor& t);
  void sparse_tensor(const Tensor& t);
  void quantizer(const pickle::Value::Quantizer& q);
  void storage(uint32_t key);
  void no_hooks();
  static Tensor on_host(const Tensor& t);
  static StoredDType stored_of(const pickle::Value::StoredTensor& t);
  uint32_t storage_of(const Tensor& t, const StoredDType& dtype);
  void byte(int opcode) { out_ += static_cast<char>(opcode); }
  template <class T>
  void number(T v) {
    for (size_t i = 0; i < sizeof(T); ++i) byte(static_cast<int>(static_cast<uint64_t>(v) >> (8 * i) & 0xff));
  }

  bool script_;
  std::string out_;
  std::unordered_map<const void*, uint32_t> memo_;
  std::map<std::string, uint32_t> globals_;
  uint32_t remembered_ = 0;
  std::vector<StorageRef> storages_;
  std::vector<std::string_view> storage_classes_;
  std::unordered_map<const void*, uint32_t> storage_index_;
};

class ZipWriter;
/// The records of a checkpoint that is this value.
void add_checkpoint(ZipWriter& zip, Pickler& pickler, const pickle::Value& value);

}  // namespace brasa::io
