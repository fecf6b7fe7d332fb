#pragma once

#include <ostream>
#include <string_view>

namespace brasa::nn {

/// A bool as a word. The stream goes on to write them so, as after LibTorch's.
struct Word {
  bool value;
  friend std::ostream& operator<<(std::ostream& out, Word w) { return out << std::boolalpha << w.value; }
};
inline Word word(bool b) { return {b}; }

/// A layer as LibTorch prints it: `Described(stream, "ELU")("alpha", 1.0).flag("inplace", false)` gives torch::nn::ELU(alpha=1).
class Described {
 public:
  Described(std::ostream& stream, std::string_view name) : stream_(stream) { stream_ << "torch::nn::" << name << "("; }
  ~Described() { stream_ << ")"; }
  template <class T>
  Described& operator()(std::string_view name, const T& value) {
    separate() << name << "=";
    return show(value);
  }
  /// Without a name.
  template <class T>
  Described& value(const T& value) {
    separate();
    return show(value);
  }
  /// LibTorch asks for words here though it writes no bool.
  Described& words() {
    stream_ << std::boolalpha;
    return *this;
  }
  /// Only if it is set.
  Described& flag(std::string_view name, bool on) { return on ? (*this)(name, true) : *this; }

 private:
  std::ostream& separate() {
    if (!first_) stream_ << ", ";
    first_ = false;
    return stream_;
  }
  template <class T>
  Described& show(const T& value) {
    if constexpr (std::is_same_v<T, bool>)
      stream_ << word(value);
    else
      stream_ << value;
    return *this;
  }
  std::ostream& stream_;
  bool first_ = true;
};

}  // namespace brasa::nn
