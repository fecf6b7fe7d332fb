#pragma once

#include <variant>

/// LibTorch's words for choices: `CrossEntropyLossOptions().reduction(kSum)`.
namespace brasa {

namespace enumtype {
struct kNone {};
struct kMean {};
struct kSum {};
struct kFanIn {};
struct kFanOut {};
struct kLinear {};
struct kConv1D {};
struct kConv2D {};
struct kConv3D {};
struct kSigmoid {};
struct kTanh {};
struct kReLU {};
struct kLeakyReLU {};
}  // namespace enumtype

inline constexpr enumtype::kNone kNone;
inline constexpr enumtype::kMean kMean;
inline constexpr enumtype::kSum kSum;
inline constexpr enumtype::kFanIn kFanIn;
inline constexpr enumtype::kFanOut kFanOut;
inline constexpr enumtype::kLinear kLinear;
inline constexpr enumtype::kConv1D kConv1D;
inline constexpr enumtype::kConv2D kConv2D;
inline constexpr enumtype::kConv3D kConv3D;
inline constexpr enumtype::kSigmoid kSigmoid;
inline constexpr enumtype::kTanh kTanh;
inline constexpr enumtype::kReLU kReLU;
inline constexpr enumtype::kLeakyReLU kLeakyReLU;

/// How a loss becomes one number.
using Reduction = std::variant<enumtype::kNone, enumtype::kMean, enumtype::kSum>;

}  // namespace brasa
