#pragma once

#include <cstdint>
#include <span>

namespace brasa::compiler {

/// The lines of a contiguous tensor along one dimension. Element k of a line lies at its start + k * inner.
struct Lines {
  int64_t outer = 1, length = 1, inner = 1;
  Lines(std::span<const int64_t> sizes, int64_t dim) {
    for (size_t d = 0; d < sizes.size(); ++d) {
      auto at = static_cast<int64_t>(d);
      (at < dim ? outer : at == dim ? length : inner) *= sizes[d];
    }
  }
  int64_t count() const { return outer * inner; }
  int64_t start(int64_t line) const { return line / inner * length * inner + line % inner; }
};

}  // namespace brasa::compiler
