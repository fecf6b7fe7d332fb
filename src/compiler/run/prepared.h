#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "compiler/run/executable.h"
#include "compiler/run/memory.h"
#include "support/mutex.h"

namespace brasa::compiler {

/// What a plan's first steps make of lasting inputs alone (see Plan::prepared): packed and transformed weights. It is made once, and made anew
/// where an input's content or a size has changed.
class PreparedValues {
 public:
  /// What the values are made of: inputs, and symbols by id.
  struct Sources {
    std::vector<uint32_t> inputs, symbols;
  };
  struct Made {
    Memory memory;
    std::vector<uint64_t> of;
  };

  /// The contents of the sources; nothing where one is unknown.
  static std::optional<std::vector<uint64_t>> contents(const Sources& sources, const int64_t* symbols,
                                                       std::span<const Operand> inputs);
  /// What is kept; null where work of another stream makes it, which may not have ended.
  std::shared_ptr<const Made> last(runtime::Stream stream) const;
  /// Null where it was made of something else, too.
  std::shared_ptr<const Made> find(const std::vector<uint64_t>& of, runtime::Stream stream) const;
  /// Instead of what was kept before.
  void keep(std::shared_ptr<const Made> made);

 private:
  mutable Mutex mutex_;
  std::shared_ptr<const Made> made_;
};

}  // namespace brasa::compiler
