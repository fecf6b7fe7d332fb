#include "support/shared_library.h"

#include <dlfcn.h>

#include "support/error.h"

namespace brasa {

void* SharedLibrary::find(const char* name) const {
  // The loader counts the uses and gives the same library again; it stays until the process ends.
  void* library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  BRASA_CHECK(library, purpose, " needs ", file, ", which cannot be loaded (", dlerror(), "): install the package ",
              package);
  return dlsym(library, name);
}

void* SharedLibrary::symbol(const char* name) const {
  void* found = find(name);
  BRASA_CHECK(found, purpose, ": ", file, " has no ", name, ": install the package ", package);
  return found;
}

}  // namespace brasa
