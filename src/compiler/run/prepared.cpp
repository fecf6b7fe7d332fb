#include "compiler/run/prepared.h"

#include <utility>

namespace brasa::compiler {

std::optional<std::vector<uint64_t>> PreparedValues::contents(const Sources& sources, const int64_t* symbols,
                                                              std::span<const Operand> inputs) {
  std::vector<uint64_t> out;
  out.reserve(2 * sources.inputs.size() + sources.symbols.size());
  for (uint32_t i : sources.inputs) {
    if (!inputs[i].content) return std::nullopt;
    out.push_back(inputs[i].content);
    out.push_back(reinterpret_cast<uintptr_t>(inputs[i].data));  // which part of the memory
  }
  for (uint32_t id : sources.symbols) out.push_back(static_cast<uint64_t>(symbols[id]));
  return out;
}

std::shared_ptr<const PreparedValues::Made> PreparedValues::last(runtime::Stream stream) const {
  std::lock_guard lock(mutex_);
  return made_ && made_->memory.stream == stream ? made_ : nullptr;
}

std::shared_ptr<const PreparedValues::Made> PreparedValues::find(const std::vector<uint64_t>& of,
                                                                 runtime::Stream stream) const {
  std::shared_ptr<const Made> made = last(stream);
  return made && made->of == of ? made : nullptr;
}

void PreparedValues::keep(std::shared_ptr<const Made> made) {
  std::lock_guard lock(mutex_);
  std::swap(made_, made);  // what was there is freed behind the lock
}

}  // namespace brasa::compiler
