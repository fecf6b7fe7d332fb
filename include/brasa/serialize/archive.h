#pragma once

#include <cstddef>
#include <functional>
#include <iosfwd>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <brasa/autograd.h>
#include <brasa/tensor.h>

/// What modules and optimizers are saved to and loaded from: tensors under dotted names, as in a Python state_dict, and texts.
/// Files are safetensors, whose metadata the texts are, or LibTorch's archives.
namespace brasa::serialize {

/// In which order names came, and what lies above them.
class BRASA_API Order {
 public:
  void add(std::string_view name);
  /// All of the other's, below this name.
  void add(const std::string& name, const Order& below);
  /// Behind all others for one that did not.
  size_t place(const std::string& name) const;

 private:
  std::map<std::string, size_t, std::less<>> places_;
  size_t next_ = 0;
};

struct Contents {
  std::map<std::string, Tensor> tensors;
  std::map<std::string, std::string> texts;
  /// Of the tensors those that require a gradient, and every nested archive, which may be empty. Safetensors has neither.
  std::set<std::string> parameters, parts;
  /// Of tensors and texts, as they were written; files of safetensors keep none.
  Order order = {};
};

enum class Form : uint8_t {
  Safetensors,
  LibTorch  ///< what its `torch::load` reads, and Python's `torch.jit.load`
};

class BRASA_API OutputArchive {
 public:
  /// Tensors are kept by reference, not copied. An undefined one is left out.
  void write(const std::string& key, const Tensor& tensor, bool is_buffer = false);
  void write(const std::string& key, const std::string& text);
  void write(const std::string& key, const char* text) { write(key, std::string(text)); }
  /// A number, text or tensor.
  void write(const std::string& key, const autograd::IValue& value);
  /// Everything of the nested archive, under key + ".".
  void write(const std::string& key, const OutputArchive& nested);
  /// brasa::Error if it cannot be written.
  void save_to(const std::string& filename, Form form = Form::Safetensors) const;
  void save_to(std::ostream& stream, Form form = Form::Safetensors) const;
  /// Calls the function with piece after piece; it gives how much it took.
  void save_to(const std::function<size_t(const void*, size_t)>& function, Form form = Form::Safetensors) const;
  const Contents& contents() const { return contents_; }

 private:
  Contents contents_;
};

class BRASA_API InputArchive {
 public:
  InputArchive() = default;
  /// The contents of an output archive, without a file between.
  explicit InputArchive(Contents contents);

  /// A safetensors file; a checkpoint of PyTorch that is a dictionary of tensors, such as a state_dict; or what LibTorch's `torch::save`
  /// wrote. brasa::Error for a file that cannot be read.
  void load_from(const std::string& filename, std::optional<Device> device = std::nullopt);
  void load_from(std::istream& stream, std::optional<Device> device = std::nullopt);
  void load_from(const char* data, size_t size, std::optional<Device> device = std::nullopt);
  /// `read(position, buffer, size)` gives how much it read.
  void load_from(const std::function<size_t(uint64_t, void*, size_t)>& read, const std::function<size_t()>& size,
                 std::optional<Device> device = std::nullopt);
  /// A defined `tensor` gets the values, in its own dtype; brasa::Error if the sizes differ. An undefined one becomes the tensor.
  bool try_read(const std::string& key, Tensor& tensor, bool is_buffer = false);
  /// brasa::Error if there is none.
  void read(const std::string& key, Tensor& tensor, bool is_buffer = false);
  bool try_read(const std::string& key, std::string& text) const;
  bool try_read(const std::string& key, autograd::IValue& value) const;
  void read(const std::string& key, autograd::IValue& value) const;
  /// What lies under key + ".".
  bool try_read(const std::string& key, InputArchive& nested) const;
  void read(const std::string& key, InputArchive& nested) const;
  /// Names at this level, up to the first dot, in the order of writing.
  std::vector<std::string> keys() const;
  const std::string& source() const { return source_; }

 private:
  void load(std::span<const std::byte> bytes, const std::string& source, std::optional<Device> device);
  std::shared_ptr<const Contents> contents_;
  std::string prefix_, source_;
};

}  // namespace brasa::serialize
