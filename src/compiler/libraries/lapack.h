#pragma once

#include <mutex>
#include <string>

#include "support/mutex.h"

namespace brasa::compiler {

/// The system's LAPACK, which is loaded when it is first needed.
struct LapackFacts {
  std::string version, path;
  std::string why_not;  // it is not there; else empty
};
LapackFacts facts_of_lapack();

/// A function's address, by its Fortran name.
void* lapack_symbol(const char* name);

/// Held during each call where the library takes one call at a time, as OpenBLAS without threads (Debian's libopenblas0-serial) does: its calls
/// share their memory without locks. Null where it takes calls of several threads.
ForkSafe<std::mutex>* lapack_turns();

}  // namespace brasa::compiler
