#pragma once

#include "support/lazy.h"

namespace brasa {

/// A library of the system that is loaded when it is first needed, so that programs which never need it run without it.
struct SharedLibrary {
  const char* file;     // "liblapack.so.3"
  const char* package;  // that has it, for a message
  const char* purpose;  // "linear algebra"

  /// The address of a function or variable. brasa::Error with the package's name if there is no such library, or nothing of this name in it.
  void* symbol(const char* name) const;
  /// The same, or null where the library is there and has nothing of this name.
  void* find(const char* name) const;
};

}  // namespace brasa

// A function that a header declares, in the library that has it: `BRASA_SYMBOL(kPng, png_read_info)(png, info)`. It is looked up once.
#define BRASA_SYMBOL(library, name)                                                  \
  ([] {                                                                              \
    static constinit ::brasa::Lazy<void*> f([] { return (library).symbol(#name); }); \
    return reinterpret_cast<decltype(&::name)>(*f);                                  \
  }())
