// The part of a compiled graph that lets its device keep a run's launches.
#include <algorithm>

#include "compiler/run/compiled.h"
#include "support/error.h"

namespace brasa::compiler {

namespace {

// A GPU is no quicker than the host that launches a step which reads and writes so many bytes: there, beginning while a call is recorded
// (RunAhead) saves more than one call for all.
constexpr int64_t kLongStep = 16 << 20;

bool has_long_steps(const std::vector<Step>& steps) {
  int64_t bytes = 0;
  for (const Step& s : steps)
    if (s.bytes.code().empty()) bytes += s.bytes.constant();
  return bytes > kLongStep * static_cast<int64_t>(steps.size());
}

// Of the memory that it spans.
size_t bytes_of(const Operand& o) {
  int64_t last = 0;
  for (size_t d = 0; d < o.sizes.size(); ++d) {
    if (o.sizes[d] == 0) return 0;
    last += (o.sizes[d] - 1) * o.strides[d];
  }
  return static_cast<size_t>((last + 1) * size_of(o.dtype));
}

}  // namespace

// What the host has a part in cannot be kept: its own steps, and control flow.
void CompiledGraph::plan_keeping() {
  auto on_host = [](const Step& s) { return s.library || (s.call && s.call->report()); };
  if (std::any_of(parts_.steps.begin(), parts_.steps.end(), on_host) || has_long_steps(parts_.steps)) return;
  keeper_ = dynamic_cast<runtime::KeepsWork*>(&device_);
  for (const Batch& b : parts_.batches) {
    bool same = true;
    for (size_t s = b.begin; s < b.end; ++s) {
      const Step& step = parts_.steps[s];
      auto stays = [&](int buffer) {
        return buffers_[buffer].kind == Place::Arena || buffers_[buffer].kind == Place::Prepared;
      };
      same = same && step.numbers.empty() && std::all_of(step.buffers.begin(), step.buffers.end(), stays);
    }
    same_.push_back(same);
  }
}

// One more call takes the host as long as several launches take a GPU: the part is a quarter of the run at least, and needs at most half of the
// inputs, so that much is left to record. What lasts is looked for when the run is due.
void CompiledGraph::plan_first_part() {
  constexpr size_t kFewest = 4;
  if (parts_.prepared) return;
  plan_ahead();
  size_t first = needs_.size();
  while (first > 0 && 2 * needs_[first - 1] > parts_.by_value.size()) --first;
  bool pays = first >= kFewest && 4 * first >= parts_.batches.size() && first < parts_.batches.size();
  needs_.resize(pays ? first : 0);
}

// From the next run on the kept work has them in memory of its own.
void CompiledGraph::copy_moved(KeptRun& kept, std::span<const int> buffers, std::span<const Operand> inputs,
                               std::span<const Operand> outputs) const {
  for (int b : buffers) {
    bool input = buffers_[b].kind == Place::Input, written = !input;
    for (const Step& s : parts_.steps)
      for (size_t i = s.first_written; i < s.buffers.size(); ++i) written = written || s.buffers[i] == b;
    const Operand& operand = (input ? inputs : outputs)[buffers_[b].index];
    kept.copies().push_back({b, Memory(device_, bytes_of(operand), runtime::current_stream(device_)), input, written});
  }
}

void CompiledGraph::add_addresses(std::span<const Operand> inputs, Slots& slots) const {
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!parts_.by_value[i]) slots.push_back(reinterpret_cast<runtime::Slot>(inputs[i].data));
}

// All that launches of one binding of the symbols, and of one preparation, differ in.
CompiledGraph::Slots CompiledGraph::varying_slots(const int64_t* symbols, std::span<const Operand> inputs,
                                                  std::span<const Operand> outputs) const {
  Slots slots;
  add_addresses(inputs, slots);
  for (const Operand& o : outputs) slots.push_back(reinterpret_cast<runtime::Slot>(o.data));
  for (const Step& s : parts_.steps)
    if (!s.numbers.empty()) add_values(s, inputs, symbols, slots);
  return slots;
}

bool CompiledGraph::run_kept(const int64_t* symbols, std::span<const Operand> inputs, std::span<const Operand> outputs,
                             const std::optional<KeptRun::Begun>& begun) const {
  runtime::Stream stream = runtime::current_stream(device_);
  std::shared_ptr<KeptRun> found = kept_.find(device_, *keeper_, stream, {symbols, symbol_count()});
  if (!found) return false;
  KeptRun& kept = *found;
  std::lock_guard lock(kept.mutex());
  if (kept.refused()) return false;
  std::shared_ptr<PreparedValues::Made> made;
  if (parts_.prepared) {
    auto contents = PreparedValues::contents(parts_.prepared_of, symbols, inputs);
    made = contents ? prepared_.take(*contents, stream) : nullptr;
    if (!made && kept.met(contents, prepared_.contents_after(parts_.prepared_of, symbols, inputs))) return false;
    kept.read(made);
  }
  // Where nothing lasts, the kept work makes it, behind its other memory.
  size_t first = made ? parts_.prepared : 0, arena_bytes = static_cast<size_t>(arena_bytes_(symbols)),
         prepared_bytes = made ? 0 : static_cast<size_t>(prepared_bytes_(symbols));
  SmallVector<void*, 32> buffers(buffers_.size()), given;
  auto place = [&] {
    find_buffers(kept.arena(), symbols, inputs, outputs, buffers.data(),
                 made ? made->memory.data : kept.arena() + arena_bytes);
    given = buffers;
    for (const KeptRun::Copy& c : kept.copies()) buffers[c.buffer] = c.memory.data;
  };
  Slots varying = varying_slots(symbols, inputs, outputs);
  bool walks = noted_.size() < parts_.checks.size() || !kept.walked_with(varying);
  if (!walks && !kept.copies().empty()) place();
  std::vector<int> moved;
  while (walks) {
    copy_moved(kept, moved, inputs, outputs);
    try {
      if (!kept.recorded())
        kept.record(arena_bytes + prepared_bytes, [&](runtime::Stream keeping) {
          place();
          run_steps(first, {symbols, inputs, buffers.data(), keeping, &kept});
        });
    } catch (const runtime::DeviceError&) {
      kept.refuse();
    } catch (const OutOfMemoryError&) {
      kept.refuse();
    }
    if (kept.refused()) {
      prepared_.give_back(std::move(made));
      return false;
    }
    place();
    kept.begin_walk();
    run_steps(first, {symbols, inputs, buffers.data(), stream, &kept});
    moved = kept.end_walk(varying);
    walks = !moved.empty();
  }
  for (const KeptRun::Copy& c : kept.copies())
    if (c.before) device_.copy(c.memory.data, given[c.buffer], c.memory.bytes, stream);
  kept.run(begun);
  for (const KeptRun::Copy& c : kept.copies())
    if (c.after) device_.copy(given[c.buffer], c.memory.data, c.memory.bytes, stream);
  if (made) keep_prepared(std::move(made), symbols, inputs);
  return true;
}

}  // namespace brasa::compiler
