#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include <brasa/export.h>

/// LibTorch's words for choices: `CrossEntropyLossOptions().reduction(kSum)`. Each is a type of its own, so that options say which
/// of them they take.
namespace brasa {

#define BRASA_ENUM(name)                           \
  namespace enumtype {                             \
  struct k##name {                                 \
    static constexpr const char* text = "k" #name; \
  };                                               \
  }                                                \
  inline constexpr enumtype::k##name k##name{};
BRASA_ENUM(None)
BRASA_ENUM(Mean)
BRASA_ENUM(Sum)
BRASA_ENUM(Max)
BRASA_ENUM(BatchMean)
BRASA_ENUM(FanIn)
BRASA_ENUM(FanOut)
BRASA_ENUM(Linear)
BRASA_ENUM(Conv1D)
BRASA_ENUM(Conv2D)
BRASA_ENUM(Conv3D)
BRASA_ENUM(ConvTranspose1D)
BRASA_ENUM(ConvTranspose2D)
BRASA_ENUM(ConvTranspose3D)
BRASA_ENUM(Sigmoid)
BRASA_ENUM(Tanh)
BRASA_ENUM(ReLU)
BRASA_ENUM(GELU)
BRASA_ENUM(SiLU)
BRASA_ENUM(Mish)
BRASA_ENUM(LeakyReLU)
BRASA_ENUM(Constant)
BRASA_ENUM(Reflect)
BRASA_ENUM(Replicate)
BRASA_ENUM(Circular)
BRASA_ENUM(Zeros)
BRASA_ENUM(Border)
BRASA_ENUM(Reflection)
BRASA_ENUM(Nearest)
BRASA_ENUM(NearestExact)
BRASA_ENUM(Bilinear)
BRASA_ENUM(Bicubic)
BRASA_ENUM(Trilinear)
BRASA_ENUM(Area)
BRASA_ENUM(RNN_TANH)
BRASA_ENUM(RNN_RELU)
BRASA_ENUM(LSTM)
BRASA_ENUM(GRU)
BRASA_ENUM(Valid)
BRASA_ENUM(Same)
#undef BRASA_ENUM

/// One of the words E, as std::variant<E…> would hold it, which takes several times as long to compile and says no more.
template <class... E>
class Choice {
 public:
  template <class T>
    requires(std::is_same_v<T, E> || ...)
  constexpr Choice(T) : index_(position<T>()) {}  // NOLINT
  /// From a choice among fewer words.
  template <class... F>
    requires(!std::is_same_v<Choice<F...>, Choice>)
  constexpr Choice(Choice<F...> other) {  // NOLINT
    constexpr uint8_t positions[] = {position<F>()...};
    index_ = positions[other.index()];
  }
  constexpr size_t index() const { return index_; }
  template <class T>
  constexpr bool is() const {
    return index_ == position<T>();
  }

 private:
  template <class T>
  static constexpr uint8_t position() {
    static_assert((std::is_same_v<T, E> || ...), "not one of the words to choose from");
    constexpr bool same[] = {std::is_same_v<T, E>...};
    uint8_t i = 0;
    while (!same[i]) ++i;
    return i;
  }
  uint8_t index_;
};
template <class T, class... E>
constexpr bool holds_alternative(const Choice<E...>& choice) {
  return choice.template is<T>();
}

/// How a loss becomes one number.
namespace nn {
using Reduction = Choice<enumtype::kNone, enumtype::kMean, enumtype::kSum>;
}

namespace enumtype {

/// The name of the choice that was made.
template <template <class...> class Variant, class... E>
std::string get_enum_name(const Variant<E...>& choice) {
  constexpr const char* texts[] = {E::text...};
  return texts[choice.index()];
}
/// PyTorch's number of a reduction: none 0, mean 1, sum 2.
template <template <class...> class Variant, class... E>
int reduction_get_enum(const Variant<E...>& choice) {
  constexpr int numbers[] = {(std::is_same_v<E, kMean> ? 1 : std::is_same_v<E, kSum> ? 2 : 0)...};
  return numbers[choice.index()];
}

}  // namespace enumtype
}  // namespace brasa
