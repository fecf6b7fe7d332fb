#pragma once

#include <string_view>

#include "runtime/image.h"

namespace brasa::compiler {

/// Links a relocatable ELF object into code that runs at any address: sections are laid out one after the other and
/// PC-relative references resolved. brasa::InternalError names a reference to anything outside the object.
runtime::KernelImage link_flat(std::string_view object, std::string target);

}  // namespace brasa::compiler
