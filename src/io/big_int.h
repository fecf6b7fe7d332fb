#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace brasa::io {

/// Longer integers are refused: conversion takes the square of their length.
inline constexpr size_t kMaxBigIntBytes = 256;

/// Decimal digits of a two's complement integer, lowest byte first.
std::string decimal_of(std::span<const std::byte> bytes);
/// The reverse, as short as possible. brasa::Error for what is no integer.
std::string twos_complement_of(std::string_view decimal);

}  // namespace brasa::io
