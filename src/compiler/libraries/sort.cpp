#include <algorithm>
#include <vector>

#include <brasa/elements.h>

#include "compiler/libraries/lines.h"
#include "compiler/libraries/order.h"
#include "compiler/libraries/rows.h"
#include "compiler/libraries/scratch.h"
#include "runtime/thread_pool.h"
#include "support/error.h"

// Sorting and selection of lines.
namespace brasa::compiler {
namespace {

template <class T>
void sort_lines(const LibraryTensor& x, const LibraryTensor& values, int64_t* indices, int64_t dim, bool descending,
                int64_t first) {
  Lines from(x.sizes, dim), to(values.sizes, dim);
  if (to.count() == 0 || to.length == 0) return;
  runtime::parallel_for(from.count(), std::max<int64_t>(1, 4096 / from.length), [&](int64_t begin, int64_t end) {
    Keys keys(static_cast<size_t>(from.length));
    Scratch<int64_t> places(to.length);
    KeyOrder order;
    bool few = first == 0 && places.size() <= kMostKept && places.size() < keys.all.size();
    for (int64_t line = begin; line < end; ++line) {
      const T* in = static_cast<const T*>(x.data) + from.start(line);
      auto key = [&](size_t k) {
        uint64_t upwards = ordinal(in[static_cast<int64_t>(k) * from.inner]);
        return descending ? ~upwards : upwards;
      };
      if (few) {
        find_least(keys.all.size(), places.size(), key, places.data());
      } else {
        keys.fill(key);
        order.arrange(keys, static_cast<size_t>(first), places.size(), places.data());
      }
      T* out = static_cast<T*>(values.data) + to.start(line);
      for (int64_t k = 0; k < to.length; ++k) {
        out[k * to.inner] = in[places[k] * from.inner];
        indices[to.start(line) + k * to.inner] = places[k];
      }
    }
  });
}

void run(const LibraryCall& call) {
  const LibraryTensor &x = call.inputs[0], &values = call.outputs[0];
  visit_dtype(x.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    if constexpr (std::is_convertible_v<T, double>)
      sort_lines<std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>>(
          x, values, static_cast<int64_t*>(call.outputs[1].data), call.integer(1), call.args[2].get<bool>(),
          call.integer(3));
    else
      fail_internal(str("sort of ", name(x.dtype)));
  });
}

}  // namespace

// Stable; NaN is the greatest.
const Implementation kSort = {.library = "host", .name = "sort", .primitive = "prim::sort", .run = run};

}  // namespace brasa::compiler
