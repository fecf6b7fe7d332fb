#pragma once

#include "compiler/libraries/library.h"

// The rows of table.cpp, one file each.
namespace brasa::compiler {

extern const Implementation kSort;

}  // namespace brasa::compiler
