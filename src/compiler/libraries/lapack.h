#pragma once

#include <string>

namespace brasa::compiler {

/// The system's LAPACK, which is loaded when it is first needed.
struct LapackFacts {
  std::string version, path;
  std::string why_not;  // it is not there; else empty
};
LapackFacts facts_of_lapack();

/// A function's address, by its Fortran name.
void* lapack_symbol(const char* name);

}  // namespace brasa::compiler
