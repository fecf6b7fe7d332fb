#include "compiler/run/compiled.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "ir/text.h"
#include "runtime/cpu/launch.h"
#include "runtime/spans.h"
#include "runtime/thread_pool.h"
#include "support/error.h"
#include "support/processor_time.h"

namespace brasa::compiler {

using runtime::Slot;

namespace {

constexpr auto kBeforeAll = static_cast<size_t>(-1);

// Kernels that ran side by side have one time.
void note_batch(const CompiledGraph::Parts& parts, const Batch& b, const int64_t* symbols,
                runtime::KernelSpans& spans) {
  int64_t bytes = 0;
  double flops = 0;
  for (size_t s = b.begin; s < b.end; ++s) {
    bytes += parts.steps[s].bytes(symbols);
    flops += parts.steps[s].flops(symbols);
  }
  std::string name = parts.report.kernels[parts.steps[b.begin].group];
  if (b.end - b.begin > 1) name += str(", and ", b.end - b.begin - 1, " beside it");
  spans.launched(name, bytes, flops);
}

}  // namespace

double Step::flops(const int64_t* symbols) const {
  if (call) return call->flops(symbols);
  return static_cast<double>(elements(symbols)) +
         2 * static_cast<double>(results(symbols)) * static_cast<double>(steps(symbols));
}

namespace {
// What has no elements may have no memory.
void* part_of(void* data, int64_t offset) { return data ? static_cast<std::byte*>(data) + offset : data; }

// Whether steps behind those that prepare write there what the next run finds.
bool rewrites_prepared(const CompiledGraph::Parts& parts) {
  size_t first = parts.prepared ? parts.batches[parts.prepared - 1].end : parts.steps.size();
  return std::any_of(parts.steps.begin() + static_cast<std::ptrdiff_t>(first), parts.steps.end(), [&](const Step& s) {
    return std::any_of(s.buffers.begin() + static_cast<std::ptrdiff_t>(s.first_written), s.buffers.end(),
                       [&](int b) { return parts.buffers[b].kind == Place::Prepared; });
  });
}
}  // namespace

CompiledGraph::CompiledGraph(const ir::Graph& graph, runtime::Device& device, Parts parts)
    : Executable(graph),
      device_(device),
      parts_(std::move(parts)),
      arena_bytes_(parts_.arena_bytes),
      prepared_bytes_(parts_.prepared_bytes),
      prepared_(rewrites_prepared(parts_)) {
  for (const Place& p : parts_.buffers) buffers_.push_back({p.kind, p.index, SizeProgram(p.offset)});
  single_ = device.on_host() && parts_.steps.size() == 1 && !parts_.steps[0].library && !parts_.steps[0].call &&
            parts_.checks.empty() && std::all_of(parts_.buffers.begin(), parts_.buffers.end(), [](const Place& p) {
              return p.kind == Place::Input || p.kind == Place::Output;
            });
  for (const Step& s : parts_.steps)
    if (const auto& k = s.kernel.baseline; k && std::find(baseline_.begin(), baseline_.end(), k) == baseline_.end())
      baseline_.push_back(k);
  all_optimized_ = baseline_.empty();
  for (const Check& c : parts_.checks)
    if (!in_host_memory(c.buffer)) noted_.push_back(&c);
  if (parts_.keep) {
    size_t prepared = parts_.prepared ? parts_.batches[parts_.prepared - 1].end : 0;
    find_first_kernels({0, prepared});
    plan_keeping();
  }
  if (device.on_host() || !parts_.ahead) return;
  keeper_ ? plan_first_part() : plan_ahead();
}

// Adds this thread's processor time from here to the end of the block to the batch's kernels that run baseline code: where others use the
// machine, a run takes longer without having done more. Asking for it takes as long as a small kernel, so of runs of small ones one in
// `kSample` is timed and counts for the others, at places that no number of batches meets.
class CompiledGraph::BaselineTime {
 public:
  BaselineTime(const CompiledGraph& graph, const Batch& batch)
      : graph_(graph), batch_(batch), runs_(graph.all_optimized_.load(std::memory_order_relaxed) ? 0 : runs()) {
    if (runs_ > 0) begin_ = processor_time();
  }
  ~BaselineTime() {
    if (runs_ > 0) graph_.note_time(batch_, processor_time() - begin_, runs_);
  }
  BaselineTime(const BaselineTime&) = delete;
  BaselineTime& operator=(const BaselineTime&) = delete;

 private:
  // For how many this run counts.
  int64_t runs() const {
    bool baseline = false;
    for (size_t s = batch_.begin; s < batch_.end; ++s) {
      const BaselineKernel* k = graph_.parts_.steps[s].kernel.baseline.get();
      if (!k || k->optimized()) continue;
      if (k->is_long()) return 1;
      baseline = true;
    }
    constexpr uint32_t kSample = 16, kGoldenRatio = 2654435769;  // of 2^32
    if (!baseline) return 0;
    return graph_.small_.fetch_add(1, std::memory_order_relaxed) * kGoldenRatio < UINT32_MAX / kSample ? kSample : 0;
  }
  const CompiledGraph& graph_;
  const Batch batch_;
  const int64_t runs_;
  int64_t begin_ = 0;
};

void CompiledGraph::note_time(const Batch& b, int64_t nanoseconds, int64_t runs) const {
  auto kernels = static_cast<int64_t>(b.end - b.begin);
  for (size_t s = b.begin; s < b.end; ++s)
    if (BaselineKernel* k = parts_.steps[s].kernel.baseline.get()) k->ran(nanoseconds / kernels, runs);
}

namespace {
int64_t nanoseconds_now() { return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1); }
}  // namespace

int64_t CompiledGraph::begin_run() const {
  return all_optimized_.load(std::memory_order_relaxed) ? 0 : nanoseconds_now();
}

// Where the caller compiles, a call takes at most twice its time and one kernel more.
void CompiledGraph::optimize_due(int64_t begin) const {
  if (begin == 0) return;
  std::vector<std::shared_ptr<BaselineKernel>> due;
  for (const auto& k : baseline_)
    if (k->due()) due.push_back(k);
  if (!due.empty()) optimize_soon(due, nanoseconds_now() - begin);
  all_optimized_ = baseline_kernels() == 0;
}

bool CompiledGraph::optimize(bool wait) const {
  if (all_optimized_.load(std::memory_order_relaxed)) return true;
  wait ? compiler::optimize(baseline_) : optimize_soon(baseline_);
  all_optimized_ = baseline_kernels() == 0;
  return settled(baseline_);
}

size_t CompiledGraph::baseline_kernels() const {
  return static_cast<size_t>(
      std::count_if(baseline_.begin(), baseline_.end(), [](const auto& k) { return !k->optimized(); }));
}

// One that nobody reads may have no value.
void CompiledGraph::add_values(const Step& s, std::span<const Operand> inputs, const int64_t* symbols, Slots& slots) {
  for (const Step::Number& n : s.numbers) {
    Slot value = 0;
    if (auto* data = static_cast<const std::byte*>(inputs[n.input].data)) std::memcpy(&value, data + n.offset, n.bytes);
    slots.push_back(value);
  }
  for (uint32_t id : s.sizes) slots.push_back(static_cast<Slot>(symbols[id]));
}

void CompiledGraph::add_slots(const Step& s, const Run& r, Slots& slots) {
  for (int b : s.buffers) slots.push_back(reinterpret_cast<Slot>(r.buffers[b]));
  add_values(s, r.inputs, r.symbols, slots);
}

void CompiledGraph::run_single(const int64_t* symbols, std::span<const Operand> inputs,
                               std::span<const Operand> outputs) const {
  const Step& s = parts_.steps[0];
  Slots slots;
  for (int b : s.buffers) {
    const Buffer& from = buffers_[b];
    void* data = (from.kind == Place::Input ? inputs : outputs)[from.index].data;
    slots.push_back(reinterpret_cast<Slot>(part_of(data, from.offset(symbols))));
  }
  add_values(s, inputs, symbols, slots);
  std::optional<runtime::KernelSpans> spans;
  if (runtime::recording_spans()) [[unlikely]]
    spans.emplace(device_, runtime::kDefaultStream);
  int64_t begin = begin_run();
  {
    BaselineTime time(*this, {0, 1});
    device_.launch(launch_of(s, slots, 1, symbols), runtime::kDefaultStream);
  }
  optimize_due(begin);
  if (spans) [[unlikely]]
    spans->launched(parts_.report.kernels[s.group], s.bytes(symbols), s.flops(symbols));
}

void CompiledGraph::run_batch(const Batch& b, const Run& r) const {
  // Task i of the batch is a piece of the step whose first task is the last one at most i.
  const std::vector<Step>& steps = parts_.steps;
  SmallVector<int64_t, 64> first;
  int64_t tasks = 0;
  for (size_t s = b.begin; s < b.end; ++s) {
    first.push_back(tasks);
    tasks += (steps[s].count(r.symbols) + steps[s].grain - 1) / steps[s].grain;
  }
  runtime::parallel_for(tasks, 1, [&](int64_t begin, int64_t end) {
    size_t s = static_cast<size_t>(std::upper_bound(first.begin(), first.end(), begin) - first.begin()) - 1;
    while (begin < end) {
      int64_t stop = s + 1 < first.size() ? std::min(end, first[s + 1]) : end;
      if (begin < stop) {
        const Step& step = steps[b.begin + s];
        Slots slots;
        add_slots(step, r, slots);
        int64_t from = (begin - first[s]) * step.grain,
                to = std::min((stop - first[s]) * step.grain, step.count(r.symbols));
        reinterpret_cast<runtime::cpu::KernelFunction>(reinterpret_cast<uintptr_t>(step.function()))(slots.data(), from,
                                                                                                     to, nullptr);
      }
      begin = stop;
      ++s;
    }
  });
}

bool CompiledGraph::in_host_memory(int buffer) const {
  const Buffer& b = buffers_[buffer];
  return device_.on_host() || (b.kind == Place::Input && parts_.by_value[b.index]);
}

void CompiledGraph::launch(const Batch& b, const Run& r) const {
  const Step& s = parts_.steps[b.begin];
  if (s.call) {
    SmallVector<void*, 8> tensors;
    for (int b : s.buffers) tensors.push_back(r.buffers[b]);
    if (r.kept) r.kept->call(s.buffers, tensors);
    if (!r.kept || r.kept->recording()) s.call->run(device_, r.stream, tensors.data(), r.symbols);
    return;
  }
  if (s.library) return run_library(s, r);
  Slots slots;
  for (size_t i = b.begin; i < b.end; ++i) add_slots(parts_.steps[i], r, slots);
  give(launch_of(s, slots, b.end - b.begin, r.symbols), r);
}

runtime::Launch CompiledGraph::launch_of(const Step& s, const Slots& slots, size_t calls,
                                         const int64_t* symbols) const {
  return {s.function(),
          {slots.data(), slots.size()},
          s.buffers.size(),
          s.count(symbols),
          s.threads,
          s.grain,
          static_cast<size_t>(s.scratch(symbols)),
          static_cast<int64_t>(calls),
          std::find(first_kernels_.begin(), first_kernels_.end(), &s) != first_kernels_.end()};
}

// The one place where a device waits for the host: functions of libraries that only the host has (see libraries/) run there, on
// copies of what lies elsewhere. runtime::host_steps counts them.
void CompiledGraph::run_library(const Step& s, const Run& r) const {
  if (!device_.on_host()) ++runtime::host_steps();
  size_t count = s.buffers.size();
  std::vector<Memory> copies;
  SmallVector<void*, 16> pointers(count);
  copies.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    void* there = r.buffers[s.buffers[i]];
    if (in_host_memory(s.buffers[i])) {
      pointers[i] = there;
      continue;
    }
    copies.emplace_back(runtime::host(), s.library->bytes_of(i, r.symbols), runtime::kDefaultStream);
    pointers[i] = copies.back().data;
    if (i < s.first_written) device_.download(pointers[i], there, copies.back().bytes, r.stream);
  }
  s.library->run(pointers.data(), r.symbols);
  for (size_t i = s.first_written; i < count && !device_.on_host(); ++i)
    device_.upload(r.buffers[s.buffers[i]], pointers[i], s.library->bytes_of(i, r.symbols), r.stream);
}

void CompiledGraph::check(size_t after, const Run& r) const {
  // They are in the order of the steps; those before all come last.
  auto first = std::lower_bound(parts_.checks.begin(), parts_.checks.end(), after,
                                [](const Check& c, size_t step) { return c.after < step; });
  for (; first != parts_.checks.end() && first->after == after; ++first) {
    const Check& c = *first;
    if (in_host_memory(c.buffer) && !*static_cast<const bool*>(r.buffers[c.buffer])) fail_check(c.message, r.symbols);
  }
}

// Behind all steps, so that one launch looks at several; their bools stay until then.
void CompiledGraph::note_checks(const Run& r) const {
  if (noted_.empty()) return;
  auto messages = [&] {
    auto texts = std::make_shared<std::vector<std::string>>();
    for (const Check* c : noted_) texts->push_back(check_text(c->message, r.symbols));
    return texts;
  };
  Slot first = r.kept ? r.kept->expect(messages) : device_.expect(r.stream, messages());
  size_t together = parts_.noted_together();
  for (size_t begin = 0; begin < noted_.size(); begin += together) {
    Slots slots;
    for (size_t i = begin; i < begin + together; ++i)  // the last launch's first one again, where there are fewer
      slots.push_back(reinterpret_cast<Slot>(r.buffers[noted_[i < noted_.size() ? i : begin]->buffer]));
    slots.push_back(reinterpret_cast<Slot>(device_.error_word()));
    slots.push_back(first + begin);
    give({parts_.note.function, {slots.data(), slots.size()}, together + 1, 1}, r);
  }
}

bool CompiledGraph::takes(std::span<const Operand> inputs, std::span<const Operand> outputs) const {
  if (!parts_.unaligned) return true;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!parts_.by_value[i] && !takes_address(inputs[i].data)) return false;
  return std::all_of(outputs.begin(), outputs.end(), [&](const Operand& o) { return takes_address(o.data); });
}

void CompiledGraph::find_buffers(std::byte* arena, const int64_t* symbols, std::span<const Operand> inputs,
                                 std::span<const Operand> outputs, void** buffers, const std::byte* prepared) const {
  for (size_t i = 0; i < buffers_.size(); ++i) {
    const Buffer& b = buffers_[i];
    buffers[i] = b.kind == Place::Input      ? part_of(inputs[b.index].data, b.offset(symbols))
                 : b.kind == Place::Arena    ? arena + b.offset(symbols)
                 : b.kind == Place::Prepared ? const_cast<std::byte*>(prepared) + b.offset(symbols)
                 : outputs.empty()           ? nullptr
                                             : part_of(outputs[b.index].data, b.offset(symbols));
  }
}

const Executable& CompiledGraph::unaligned() const {
  std::lock_guard lock(unaligned_mutex_);
  if (!unaligned_) unaligned_ = parts_.unaligned();
  return *unaligned_;
}

void CompiledGraph::find_first_kernels(std::initializer_list<size_t> starts) {
  for (size_t start : starts) {
    auto own = std::find_if(parts_.steps.begin() + static_cast<std::ptrdiff_t>(start), parts_.steps.end(),
                            [](const Step& s) { return !s.call && !s.library; });
    if (own != parts_.steps.end()) first_kernels_.push_back(&*own);
  }
}

const int64_t* CompiledGraph::with_defined(const int64_t* symbols, Symbols& all) const {
  if (parts_.defined.empty()) return symbols;
  all.resize(parts_.first_defined + parts_.defined.size());
  std::copy_n(symbols, parts_.first_defined, all.begin());
  for (size_t i = 0; i < parts_.defined.size(); ++i) all[parts_.first_defined + i] = parts_.defined[i](all.data());
  return all.data();
}

void CompiledGraph::run(const int64_t* symbols, std::span<const Operand> inputs,
                        std::span<const Operand> outputs) const {
  Symbols all;
  run_with_defined(with_defined(symbols, all), inputs, outputs);
}

void CompiledGraph::run_with_defined(const int64_t* symbols, std::span<const Operand> inputs,
                                     std::span<const Operand> outputs,
                                     const std::optional<KeptRun::Begun>& begun) const {
  if (single_) return run_single(symbols, inputs, outputs);
  if (!takes(inputs, outputs)) {
    return unaligned().run(symbols, inputs, outputs);
  }
  if (keeper_ && !runtime::recording_spans() && run_kept(symbols, inputs, outputs, begun)) return;
  Memory arena(device_, static_cast<size_t>(arena_bytes_(symbols)), runtime::current_stream(device_));
  parts_.prepared ? run_prepared(arena, symbols, inputs, outputs) : run_from(0, arena, symbols, inputs, outputs);
}

void CompiledGraph::run_prepared(const Memory& arena, const int64_t* symbols, std::span<const Operand> inputs,
                                 std::span<const Operand> outputs) const {
  auto contents = PreparedValues::contents(parts_.prepared_of, symbols, inputs);
  if (auto made = contents ? prepared_.take(*contents, arena.stream) : nullptr) {
    run_from(parts_.prepared, arena, symbols, inputs, outputs, made->memory.data);
    return keep_prepared(std::move(made), symbols, inputs);
  }
  Memory memory(device_, static_cast<size_t>(prepared_bytes_(symbols)), arena.stream);
  run_from(0, arena, symbols, inputs, outputs, memory.data);
  if (auto after = prepared_.contents_after(parts_.prepared_of, symbols, inputs))
    prepared_.keep(std::make_shared<PreparedValues::Made>(PreparedValues::Made{std::move(memory), {}}),
                   std::move(*after));
}

void CompiledGraph::keep_prepared(std::shared_ptr<PreparedValues::Made> made, const int64_t* symbols,
                                  std::span<const Operand> inputs) const {
  if (!prepared_.rewritten()) return;
  if (auto after = prepared_.contents_after(parts_.prepared_of, symbols, inputs))
    prepared_.keep(std::move(made), std::move(*after));
}

void CompiledGraph::run_from(size_t n, const Memory& arena, const int64_t* symbols, std::span<const Operand> inputs,
                             std::span<const Operand> outputs, const std::byte* prepared) const {
  SmallVector<void*, 32> buffers(buffers_.size());
  find_buffers(arena.data, symbols, inputs, outputs, buffers.data(), prepared);
  run_steps(n, {symbols, inputs, buffers.data(), arena.stream});
}

void CompiledGraph::run_steps(size_t n, const Run& r) const {
  std::optional<runtime::KernelSpans> spans;
  if (runtime::recording_spans()) [[unlikely]]
    spans.emplace(device_, r.stream);
  int64_t begin = begin_run();
  check(kBeforeAll, r);
  // What ran ahead is only now known to be due.
  for (size_t done = 0; done < n; ++done) check(parts_.batches[done].end - 1, r);
  for (; n < parts_.batches.size(); ++n) {
    if (r.kept && n > 0 && n == needs_.size()) r.kept->end_first_part();
    const Batch& b = parts_.batches[n];
    bool several = b.end - b.begin > 1;
    BaselineTime time(*this, b);
    if (r.kept && !r.kept->recording() && same_[n])
      parts_.steps[b.begin].call ? r.kept->skip_call() : r.kept->skip_launch();
    else
      several&& device_.on_host() ? run_batch(b, r) : launch(b, r);
    if (spans) note_batch(parts_, b, r.symbols, *spans);
    check(b.end - 1, r);
  }
  note_checks(r);
  optimize_due(begin);
}

const Report* report_of(const Executable& executable) {
  auto* compiled = dynamic_cast<const CompiledGraph*>(&executable);
  return compiled ? &compiled->report() : nullptr;
}

}  // namespace brasa::compiler
