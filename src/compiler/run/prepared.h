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
/// where an input's content or a size has changed. A run that writes there what it makes of the contents that it leaves has taken it before.
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

  /// `rewritten`: runs write what they find (Plan::prepared).
  explicit PreparedValues(bool rewritten) : rewritten_(rewritten) {}

  bool rewritten() const { return rewritten_; }

  using Contents = std::optional<std::vector<uint64_t>>;
  /// The contents of the sources when a run begins, and when it has ended; nothing where one is unknown.
  static Contents contents(const Sources& sources, const int64_t* symbols, std::span<const Operand> inputs,
                           uint64_t Operand::* when = &Operand::content);
  Contents contents_after(const Sources& sources, const int64_t* symbols, std::span<const Operand> inputs) const {
    return contents(sources, symbols, inputs, rewritten_ ? &Operand::content_after : &Operand::content);
  }
  /// What is kept, for this run alone where it writes there; null where work of another stream makes it, which may not have ended.
  std::shared_ptr<Made> take(runtime::Stream stream);
  /// Null where it was made of something else, too.
  std::shared_ptr<Made> take(const std::vector<uint64_t>& of, runtime::Stream stream);
  /// Instead of what was kept before: `made` of these contents.
  void keep(std::shared_ptr<Made> made, std::vector<uint64_t> of);
  /// After a run that did not take place.
  void give_back(std::shared_ptr<Made> made);

 private:
  std::shared_ptr<Made> taken(runtime::Stream stream, const std::vector<uint64_t>* of);
  const bool rewritten_;
  Mutex mutex_;
  std::shared_ptr<Made> made_;
};

}  // namespace brasa::compiler
