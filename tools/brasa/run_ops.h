#pragma once

#include <functional>
#include <string>
#include <vector>

#include "vectors.h"

namespace brasa::verify {

/// Runs a call with its gradients on the default device: by itself with "eager", else in a compiled function with that backend.
/// brasa::Error if it fails, or gives a tensor that lives elsewhere.
Outcome run(const std::string& op, const Entry& entry, const std::string& backend);
/// The call, to be made again and again; with ones as cotangents where a tensor asks for a gradient.
std::function<void()> repeated(const std::string& op, Entry entry, const std::string& backend);
/// "eager" and those of `compile`.
std::vector<std::string> backends();

}  // namespace brasa::verify
