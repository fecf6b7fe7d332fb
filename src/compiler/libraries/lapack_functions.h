#pragma once

#include <cmath>
#include <complex>
#include <mutex>
#include <string>
#include <type_traits>

#include "compiler/libraries/lapack.h"
#include "support/error.h"
#include "support/lazy.h"

// LAPACK's functions, and BLAS', by the type of their elements. Their matrices are column-major, their integers 32 bits, and each character
// argument has its length behind the others.
namespace brasa::compiler::lapack {

/// Whose arguments are passed by address.
template <class T>
struct Function {
  void* address;
  ForkSafe<std::mutex>* turns;
  template <class... A>
  void operator()(A... args) const {
    auto turn = turns ? std::unique_lock(*turns) : std::unique_lock<ForkSafe<std::mutex>>();
    reinterpret_cast<void (*)(A...)>(address)(args...);
  }
};
template <class T>
constexpr bool kComplex = !std::is_floating_point_v<T>;
template <class T>
using Real = decltype(std::real(T()));
template <class T>
Function<T> find(const char* name, const char* complex_name) {
  const char letter = kComplex<T> ? (sizeof(T) == 8 ? 'c' : 'z') : (sizeof(T) == 4 ? 's' : 'd');
  return {lapack_symbol((letter + std::string(kComplex<T> ? complex_name : name) + "_").c_str()), lapack_turns()};
}
/// BRASA_LAPACK(T, potrf) gives the function of elements T; BRASA_LAPACK_NAMED, where the one of complex numbers has a name of its own.
#define BRASA_LAPACK_NAMED(T, name, complex_name)                                                       \
  ([]() -> const lapack::Function<T>& {                                                                 \
    static constinit Lazy<lapack::Function<T>> f([] { return lapack::find<T>(#name, #complex_name); }); \
    return *f;                                                                                          \
  }())
#define BRASA_LAPACK(T, name) BRASA_LAPACK_NAMED(T, name, name)

constexpr size_t kLength = 1;  // of a character argument

inline int narrow(int64_t n) {
  BRASA_CHECK(n <= 0x7fffffff, "LAPACK takes matrices of at most 2^31 - 1 rows, got ", n);
  return static_cast<int>(n);
}

}  // namespace brasa::compiler::lapack
