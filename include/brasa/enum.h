#pragma once

#include <string>
#include <variant>

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

/// How a loss becomes one number.
namespace nn {
using Reduction = std::variant<enumtype::kNone, enumtype::kMean, enumtype::kSum>;
}

namespace enumtype {

/// The name of the choice that was made.
template <class... E>
std::string get_enum_name(const std::variant<E...>& choice) {
  constexpr const char* texts[] = {E::text...};
  return texts[choice.index()];
}
/// PyTorch's number of a reduction: none 0, mean 1, sum 2.
template <class... E>
int reduction_get_enum(const std::variant<E...>& choice) {
  constexpr int numbers[] = {(std::is_same_v<E, kMean> ? 1 : std::is_same_v<E, kSum> ? 2 : 0)...};
  return numbers[choice.index()];
}

}  // namespace enumtype
}  // namespace brasa
