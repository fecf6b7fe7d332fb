#pragma once

#include <brasa/export.h>

/// The threads that operators share out their work to.
namespace brasa {

BRASA_API int get_num_threads();
/// brasa::Error below 1 or inside an operator.
BRASA_API void set_num_threads(int n);
/// Nothing to do: the threads start when they are first needed.
inline void init_num_threads() {}
/// Backward runs on the thread that calls it: always 1.
inline int get_num_interop_threads() { return 1; }
inline void set_num_interop_threads(int) {}

}  // namespace brasa
