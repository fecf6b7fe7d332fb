#pragma once

#include <brasa/doctor.h>

namespace brasa::runtime::cpu {

/// The processor, and what of it code is made for.
void examine(std::vector<Finding>& findings);

}  // namespace brasa::runtime::cpu
