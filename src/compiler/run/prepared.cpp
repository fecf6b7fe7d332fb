#include "compiler/run/prepared.h"

#include <utility>

namespace brasa::compiler {

PreparedValues::Contents PreparedValues::contents(const Sources& sources, const int64_t* symbols,
                                                  std::span<const Operand> inputs, uint64_t Operand::* when) {
  std::vector<uint64_t> out;
  out.reserve(2 * sources.inputs.size() + sources.symbols.size());
  for (uint32_t i : sources.inputs) {
    if (!(inputs[i].*when)) return std::nullopt;
    out.push_back(inputs[i].*when);
    out.push_back(reinterpret_cast<uintptr_t>(inputs[i].data));  // which part of the memory
  }
  for (uint32_t id : sources.symbols) out.push_back(static_cast<uint64_t>(symbols[id]));
  return out;
}

std::shared_ptr<PreparedValues::Made> PreparedValues::taken(runtime::Stream stream, const std::vector<uint64_t>* of) {
  std::lock_guard lock(mutex_);
  if (!made_ || made_->memory.stream != stream || (of && made_->of != *of)) return nullptr;
  return rewritten_ ? std::exchange(made_, nullptr) : made_;
}

std::shared_ptr<PreparedValues::Made> PreparedValues::take(runtime::Stream stream) { return taken(stream, nullptr); }
std::shared_ptr<PreparedValues::Made> PreparedValues::take(const std::vector<uint64_t>& of, runtime::Stream stream) {
  return taken(stream, &of);
}

void PreparedValues::keep(std::shared_ptr<Made> made, std::vector<uint64_t> of) {
  made->of = std::move(of);
  std::lock_guard lock(mutex_);
  std::swap(made_, made);  // what was there is freed behind the lock
}

void PreparedValues::give_back(std::shared_ptr<Made> made) {
  if (!made || !rewritten_) return;
  std::lock_guard lock(mutex_);
  std::swap(made_, made);
}

}  // namespace brasa::compiler
