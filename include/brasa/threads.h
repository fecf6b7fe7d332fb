#pragma once

#include <cstdint>
#include <functional>

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

/// Calls `body` with disjoint pieces of [begin, end) that together cover it, on several threads; a piece has at least
/// `grain_size` items, if there are so many. The first exception of a body is rethrown.
BRASA_API void parallel_for(int64_t begin, int64_t end, int64_t grain_size,
                            const std::function<void(int64_t, int64_t)>& body);
/// Whether this is inside of such a body.
BRASA_API bool in_parallel_region();

}  // namespace brasa
