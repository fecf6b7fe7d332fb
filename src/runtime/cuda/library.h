#pragma once

#include <dlfcn.h>

#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace brasa::runtime::cuda {

/// One of NVIDIA's libraries, loaded.
struct Library {
  void* handle = nullptr;
  std::string path;
  std::string_view found_by = {};  // which of the places below
  std::string why_not = {};        // what the system said of each place, where there is none
};

/// Loads the first with one of these names: from the folders that BRASA_CUDA_LIBRARIES lists; one that the process has loaded already; by
/// the system's search; from CUDA_HOME, else /usr/local/cuda; from the packages of the Pythons on the PATH.
Library open_library(std::span<const char* const> names);

/// A library's functions, or why there are none.
template <class Functions>
struct Loaded {
  const Functions* functions = nullptr;
  std::string why_not;
  Library library = {};
};

/// Of the functions that are declared here in our own words and NVIDIA's headers in theirs: whether a call of one is a call of the
/// other. Opaque handles are pointers, and enumerations are integers of their size.
template <class Ours, class Theirs>
constexpr bool same_call() {
  if constexpr (std::is_pointer_v<Ours> && std::is_pointer_v<Theirs>)
    return std::is_function_v<std::remove_pointer_t<Ours>> == std::is_function_v<std::remove_pointer_t<Theirs>>;
  else
    return (std::is_integral_v<Ours> || std::is_enum_v<Ours>) &&
           (std::is_integral_v<Theirs> || std::is_enum_v<Theirs>) && sizeof(Ours) == sizeof(Theirs);
}
template <class Result, class... Parameters, class TheirResult, class... TheirParameters>
constexpr bool same_call(Result (*)(Parameters...), TheirResult (*)(TheirParameters...)) {
  if constexpr (sizeof...(Parameters) != sizeof...(TheirParameters))
    return false;
  else
    return same_call<Result, TheirResult>() && (same_call<Parameters, TheirParameters>() && ...);
}

template <class F>
bool bind(const Library& library, const char* name, F& function) {
  function = reinterpret_cast<F>(dlsym(library.handle, name));
  return function != nullptr;
}

}  // namespace brasa::runtime::cuda

/// Finds `symbol` in the library for a pointer to a function. Where a file includes NVIDIA's header and says so by BRASA_CHECK_PROTOTYPES,
/// the pointer's type is checked against it.
#ifdef BRASA_CHECK_PROTOTYPES
#define BRASA_BIND(library, symbol, function)                                                                  \
  [&] {                                                                                                        \
    static_assert(::brasa::runtime::cuda::same_call(decltype(function)(nullptr), decltype (&symbol)(nullptr)), \
                  #symbol " is declared otherwise in NVIDIA's header");                                        \
    return ::brasa::runtime::cuda::bind(library, #symbol, function);                                           \
  }()
#else
#define BRASA_BIND(library, symbol, function) ::brasa::runtime::cuda::bind(library, #symbol, function)
#endif
