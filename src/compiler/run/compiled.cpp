#include "compiler/run/compiled.h"

#include <algorithm>
#include <chrono>

#include "ir/text.h"
#include "runtime/cpu/allocator.h"
#include "runtime/cpu/launch.h"
#include "runtime/thread_pool.h"
#include "support/error.h"
#include "support/small_vector.h"

namespace brasa::compiler {

using ir::Expr;

Compiled::Compiled(const ir::Graph& graph, std::vector<Place> buffers, std::vector<Step> steps,
                   std::vector<Batch> batches, std::vector<Check> checks, Expr arena_bytes, Report report)
    : Executable(graph),
      steps_(std::move(steps)),
      batches_(std::move(batches)),
      checks_(std::move(checks)),
      arena_bytes_(arena_bytes),
      text_(ir::print(graph)),
      report_(std::move(report)) {
  for (const Place& p : buffers) buffers_.push_back({p.kind, p.index, SizeProgram(p.offset)});
}

void Compiled::run_step(const Step& s, void* const* buffers, const int64_t* symbols) const {
  SmallVector<void*, 16> pointers(s.buffers.size());
  for (size_t i = 0; i < s.buffers.size(); ++i) pointers[i] = buffers[s.buffers[i]];
  if (s.library) return s.library->run(pointers.data(), symbols);
  SmallVector<int64_t, 16> sizes(s.sizes.size());
  for (size_t i = 0; i < s.sizes.size(); ++i) sizes[i] = symbols[s.sizes[i]];
  runtime::cpu::launch(s.kernel.function, pointers.data(), sizes.data(), s.count(symbols), s.grain,
                       static_cast<size_t>(s.scratch(symbols)));
}

void Compiled::run_batch(const Batch& b, void* const* buffers, const int64_t* symbols) const {
  // Task i of the batch is a piece of the step whose first task is the last one at most i.
  SmallVector<int64_t, 64> first;
  int64_t tasks = 0;
  for (size_t s = b.begin; s < b.end; ++s) {
    first.push_back(tasks);
    tasks += (steps_[s].count(symbols) + steps_[s].grain - 1) / steps_[s].grain;
  }
  runtime::parallel_for(tasks, 1, [&](int64_t begin, int64_t end) {
    size_t s = static_cast<size_t>(std::upper_bound(first.begin(), first.end(), begin) - first.begin()) - 1;
    while (begin < end) {
      int64_t stop = s + 1 < first.size() ? std::min(end, first[s + 1]) : end;
      if (begin < stop) {
        const Step& step = steps_[b.begin + s];
        SmallVector<void*, 16> pointers(step.buffers.size());
        for (size_t i = 0; i < step.buffers.size(); ++i) pointers[i] = buffers[step.buffers[i]];
        SmallVector<int64_t, 16> sizes(step.sizes.size());
        for (size_t i = 0; i < step.sizes.size(); ++i) sizes[i] = symbols[step.sizes[i]];
        int64_t from = (begin - first[s]) * step.grain,
                to = std::min((stop - first[s]) * step.grain, step.count(symbols));
        step.kernel.function(pointers.data(), sizes.data(), from, to, nullptr);
      }
      begin = stop;
      ++s;
    }
  });
}

void Compiled::run(const int64_t* symbols, std::span<const Operand> inputs, std::span<const Operand> outputs) const {
  execute(symbols, inputs, outputs, nullptr);
}

void Compiled::run_timed(const int64_t* symbols, std::span<const Operand> inputs, std::span<const Operand> outputs,
                         std::vector<double>& seconds) const {
  seconds.assign(steps_.size(), 0);
  execute(symbols, inputs, outputs, &seconds);
}

void Compiled::execute(const int64_t* symbols, std::span<const Operand> inputs, std::span<const Operand> outputs,
                       std::vector<double>* seconds) const {
  struct Arena {
    size_t bytes;
    std::byte* data;
    explicit Arena(size_t n) : bytes(n), data(static_cast<std::byte*>(n ? runtime::cpu::allocate(n) : nullptr)) {}
    ~Arena() {
      if (data) runtime::cpu::deallocate(data, bytes);
    }
    Arena(const Arena&) = delete;
  } arena(static_cast<size_t>(arena_bytes_(symbols)));
  SmallVector<void*, 32> buffers(buffers_.size());
  for (size_t i = 0; i < buffers_.size(); ++i) {
    const Buffer& b = buffers_[i];
    buffers[i] = b.kind == Place::Input    ? inputs[b.index].data
                 : b.kind == Place::Output ? outputs[b.index].data
                                           : arena.data + b.offset(symbols);
  }
  auto failed = [&](size_t after) -> const Check* {
    for (const Check& c : checks_)
      if (c.after == after && !*static_cast<const bool*>(buffers[c.buffer])) return &c;
    return nullptr;
  };
  if (!checks_.empty())
    if (const Check* c = failed(static_cast<size_t>(-1))) fail_check(c->message, symbols);
  for (const Batch& b : batches_) {
    if (seconds)
      for (size_t s = b.begin; s < b.end; ++s) {
        auto start = std::chrono::steady_clock::now();
        run_step(steps_[s], buffers.data(), symbols);
        (*seconds)[s] = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      }
    else if (b.end - b.begin == 1)
      run_step(steps_[b.begin], buffers.data(), symbols);
    else
      run_batch(b, buffers.data(), symbols);
    if (!checks_.empty())
      for (size_t s = b.begin; s < b.end; ++s)
        if (const Check* c = failed(s)) fail_check(c->message, symbols);
  }
}

std::vector<std::pair<std::string, double>> profile(const Executable& executable, const int64_t* symbols,
                                                    std::span<const Operand> inputs, std::span<const Operand> outputs) {
  auto* compiled = dynamic_cast<const Compiled*>(&executable);
  BRASA_CHECK(compiled, "only what the compiler made can be profiled");
  std::vector<double> seconds;
  compiled->run_timed(symbols, inputs, outputs, seconds);
  std::vector<std::pair<std::string, double>> out;
  for (size_t s = 0; s < seconds.size(); ++s)
    out.emplace_back(compiled->report().kernels[compiled->steps()[s].group], seconds[s]);
  return out;
}

const Report* report_of(const Executable& executable) {
  auto* compiled = dynamic_cast<const Compiled*>(&executable);
  return compiled ? &compiled->report() : nullptr;
}

}  // namespace brasa::compiler
