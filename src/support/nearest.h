#pragma once

#include <span>
#include <string>
#include <string_view>

namespace brasa {

/// For an error about a name: "; did you mean 'numbers'?" if one of `known` is near, else "; there are a, b".
std::string nearest(std::string_view name, std::span<const std::string> known);

}  // namespace brasa
