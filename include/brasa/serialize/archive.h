#pragma once

#include <functional>
#include <iosfwd>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <brasa/autograd.h>
#include <brasa/tensor.h>

/// What modules and optimizers are saved to and loaded from: tensors under dotted names, as in a Python state_dict, and texts.
/// Files are safetensors; the texts are its metadata.
namespace brasa::safetensors {
class File;
}
namespace brasa::serialize {

struct Contents {
  std::map<std::string, Tensor> tensors;
  std::map<std::string, std::string> texts;
};

class OutputArchive {
 public:
  /// Tensors are kept by reference, not copied. An undefined one is left out.
  void write(const std::string& key, const Tensor& tensor, bool is_buffer = false) {
    (void)is_buffer;
    if (tensor.defined()) contents_.tensors[key] = tensor.detach();
  }
  void write(const std::string& key, const std::string& text) { contents_.texts[key] = text; }
  /// Everything of the nested archive, under key + ".".
  void write(const std::string& key, const OutputArchive& nested) {
    for (const auto& [name, tensor] : nested.contents_.tensors) contents_.tensors[key + "." + name] = tensor;
    for (const auto& [name, text] : nested.contents_.texts) contents_.texts[key + "." + name] = text;
  }
  /// A safetensors file; brasa::Error if it cannot be written.
  BRASA_API void save_to(const std::string& filename) const;
  BRASA_API void save_to(std::ostream& stream) const;
  /// Calls the function with piece after piece; it gives how much it took.
  BRASA_API void save_to(const std::function<size_t(const void*, size_t)>& function) const;
  const Contents& contents() const { return contents_; }

 private:
  Contents contents_;
};

class InputArchive {
 public:
  InputArchive() = default;
  /// The contents of an output archive, without a file between.
  explicit InputArchive(Contents contents)
      : contents_(std::make_shared<Contents>(std::move(contents))), source_("archive") {}

  /// brasa::Error for a file that cannot be read.
  BRASA_API void load_from(const std::string& filename, std::optional<Device> device = std::nullopt);
  BRASA_API void load_from(std::istream& stream, std::optional<Device> device = std::nullopt);
  BRASA_API void load_from(const char* data, size_t size, std::optional<Device> device = std::nullopt);
  /// `read(position, buffer, size)` gives how much it read.
  BRASA_API void load_from(const std::function<size_t(uint64_t, void*, size_t)>& read, const std::function<size_t()>& size,
                           std::optional<Device> device = std::nullopt);
  /// A defined `tensor` gets the values, in its own dtype; brasa::Error if the sizes differ. An undefined one becomes the tensor.
  bool try_read(const std::string& key, Tensor& tensor, bool is_buffer = false) {
    (void)is_buffer;
    if (!contents_) return false;
    auto it = contents_->tensors.find(prefix_ + key);
    if (it == contents_->tensors.end()) return false;
    NoGradGuard no_grad;
    if (!tensor.defined()) {
      tensor = it->second.clone();
      return true;
    }
    if (!(tensor.sizes() == it->second.sizes())) size_error(key, tensor, it->second);
    tensor.copy_(it->second);
    return true;
  }
  /// brasa::Error if there is none.
  void read(const std::string& key, Tensor& tensor, bool is_buffer = false) {
    if (!try_read(key, tensor, is_buffer)) throw Error(source_ + ": there is no tensor '" + prefix_ + key + "'");
  }
  bool try_read(const std::string& key, std::string& text) const {
    if (!contents_) return false;
    auto it = contents_->texts.find(prefix_ + key);
    if (it == contents_->texts.end()) return false;
    text = it->second;
    return true;
  }
  /// What lies under key + ".".
  bool try_read(const std::string& key, InputArchive& nested) const {
    nested = *this;
    nested.prefix_ = prefix_ + key + ".";
    return !nested.keys().empty();
  }
  void read(const std::string& key, InputArchive& nested) const {
    if (!try_read(key, nested)) throw Error(source_ + ": there is nothing under '" + prefix_ + key + "'");
  }
  /// Names at this level, up to the first dot.
  std::vector<std::string> keys() const {
    std::map<std::string, bool> found;
    if (contents_) {
      collect(contents_->tensors, found);
      collect(contents_->texts, found);
    }
    std::vector<std::string> out;
    for (const auto& [key, present] : found) out.push_back(key);
    return out;
  }
  const std::string& source() const { return source_; }

 private:
  void load(const safetensors::File& file, const std::string& source, std::optional<Device> device);
  template <class Map>
  void collect(const Map& map, std::map<std::string, bool>& found) const {
    for (auto it = map.lower_bound(prefix_); it != map.end() && it->first.starts_with(prefix_); ++it)
      found[it->first.substr(prefix_.size(), it->first.find('.', prefix_.size()) - prefix_.size())] = true;
  }
  [[noreturn]] void size_error(const std::string& key, const Tensor& want, const Tensor& have) const {
    throw Error(source_ + ": tensor '" + prefix_ + key + "' has sizes " + text_of(have.sizes()) + ", expected " +
                text_of(want.sizes()));
  }
  static std::string text_of(IntArrayRef sizes) {
    std::string out = "[";
    for (size_t i = 0; i < sizes.size(); ++i) out += (i ? ", " : "") + std::to_string(sizes[i]);
    return out + "]";
  }

  std::shared_ptr<const Contents> contents_;
  std::string prefix_, source_;
};

}  // namespace brasa::serialize
