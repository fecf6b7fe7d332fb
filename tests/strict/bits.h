#pragma once

#include <string>
#include <vector>

#include <brasa/brasa.h>

namespace brasa {

/// The first difference between bits, or nothing. All NaNs are one.
std::string difference(const std::vector<Tensor>& want, const std::vector<Tensor>& got);

}  // namespace brasa
