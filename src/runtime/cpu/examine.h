#pragma once

#include <string>

#include <brasa/doctor.h>

namespace brasa::runtime::cpu {

/// As the system calls the first processor.
const std::string& processor_model();

/// The processor, and what of it code is made for.
void examine(std::vector<Finding>& findings);

}  // namespace brasa::runtime::cpu
