#include "compiler/kernels/tuner.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <optional>

#include <brasa/threads.h>

#include "compiler/kernels/disk_cache.h"
#include "compiler/kernels/kernels.h"
#include "compiler/loops/layout.h"
#include "compiler/version.h"
#include "ir/text.h"
#include "runtime/cpu/examine.h"
#include "support/hash.h"
#include "support/log.h"
#include "support/processor_time.h"

namespace brasa::compiler {

namespace {

// A kernel that takes less is not worth the code of others, nor is one that gains less.
constexpr double kWorthIt = 50e-6, kGain = 0.97;
// Runs end when they have taken so long for each schedule, but there are so many in any case.
constexpr double kEnough = 4e-3;
constexpr int kLeastRuns = 3, kMostRuns = 50;
// Of all tensors of a group; larger ones are not made a second time.
constexpr int64_t kMostBytes = int64_t{1} << 30;
// Repeated, a small number of each floating type.
constexpr uint8_t kSmall = 0x3c;

std::atomic<int64_t> count_of_measured{0};

}  // namespace

ExampleSizes::ExampleSizes(const ir::Facts& facts, const DefinedSymbols* defined)
    : facts_(facts), first_(defined ? defined->first : UINT32_MAX) {
  if (!defined) return;
  for (const ir::Expr& e : defined->are) values_.push_back(known(e) ? std::optional(value(e)) : std::nullopt);
}

bool ExampleSizes::known(const ir::Expr& e) const {
  std::vector<ir::Expr> symbols;
  ir::collect_symbols(e, symbols);
  return std::all_of(symbols.begin(), symbols.end(), [&](const ir::Expr& s) {
    if (s->kind != ir::ExprKind::Size || s->id < first_) return facts_.has_hint(s);
    size_t k = s->id - first_;
    return k < values_.size() && values_[k].has_value();
  });
}

int64_t ExampleSizes::value(const ir::Expr& e) const {
  ir::Expr of_inputs = ir::substitute(e, [&](const ir::Expr& s) -> std::optional<ir::Expr> {
    if (s->kind != ir::ExprKind::Size || s->id < first_) return std::nullopt;
    return ir::Expr(values_.at(s->id - first_).value());
  });
  return of_inputs.is_constant() ? of_inputs.constant() : facts_.hint(of_inputs);
}

Trial::Trial(const Group& group, runtime::Device& device, std::string options, const ExampleSizes& sizes)
    : group_(group), device_(device), options_(std::move(options)), sizes_(sizes) {}

bool Trial::prepare() {
  for (const ir::Input& in : group_.graph->inputs())
    if (!add_tensor(in.value, in.strides, true)) return false;
  for (size_t i = 0; i < group_.graph->outputs().size(); ++i)
    if (!add_tensor(group_.graph->outputs()[i].value, group_.output_strides[i], false)) return false;
  return true;
}

bool Trial::add_tensor(ir::Value v, const std::vector<ir::Expr>& strides, bool input) {
  const ir::Type& type = type_of(v);
  // Without elements there is nothing to measure, and no span of memory.
  for (const ir::Expr& e : type.shape)
    if (!sizes_.known(e) || sizes_.value(e) == 0) return false;
  ir::Expr span = span_of(type, strides);
  if (!sizes_.known(span) || sizes_.value(span) > kMostBytes) return false;
  int64_t bytes = sizes_.value(span) * size_of(type.dtype), all = bytes;
  for (const Memory& m : memory_) all += static_cast<int64_t>(m.bytes);
  if (all > kMostBytes) return false;
  memory_.emplace_back(device_, static_cast<size_t>(bytes), runtime::kDefaultStream);
  // Whatever is an index is 0, which lies in all that has elements.
  device_.fill(memory_.back().data, input && is_floating(type.dtype) ? kSmall : 0, static_cast<size_t>(bytes),
               runtime::kDefaultStream);
  return true;
}

std::vector<double> Trial::measure(std::span<const Schedule> schedules) {
  std::vector<std::vector<Lowered>> lowered;
  std::vector<std::string> texts;
  for (const Schedule& s : schedules) {
    lowered.push_back(lower(group_, s));
    for (const Lowered& l : lowered.back()) texts.push_back(ir::print(*l.loops));
  }
  std::vector<LoadedKernel> loaded = load_kernels(texts, device_, options_);
  std::vector<std::vector<Call>> calls(schedules.size());
  size_t next = 0;
  for (size_t s = 0; s < schedules.size(); ++s)
    for (const Lowered& l : lowered[s]) calls[s].push_back(call(l, loaded[next++]));
  // In turn, so that what else the machine does meets all of them.
  std::vector<double> least(schedules.size(), std::numeric_limits<double>::infinity());
  Clock::time_point begin = Clock::now();
  auto enough = std::chrono::duration<double>(kEnough * static_cast<double>(schedules.size()));
  for (int n = 0; n < kMostRuns && (n < kLeastRuns || Clock::now() - begin < enough); ++n)
    for (size_t s = 0; s < schedules.size(); ++s) least[s] = std::min(least[s], run(calls[s]));
  return least;
}

Trial::Call Trial::call(const Lowered& lowered, const LoadedKernel& kernel) const {
  KernelLayout layout = layout_of(*lowered.loops);
  Call out;
  for (int b : lowered.buffers)
    out.slots.push_back(reinterpret_cast<runtime::Slot>(memory_[static_cast<size_t>(b)].data));
  out.slots.resize(out.slots.size() + lowered.numbers.size());
  for (ir::Expr e : layout.sizes) out.slots.push_back(static_cast<runtime::Slot>(sizes_.value(e)));
  out.launch.kernel = kernel.function;
  out.launch.addresses = lowered.buffers.size();
  out.launch.count = sizes_.value(layout.count);
  out.launch.grain = lowered.grain;
  out.launch.scratch_bytes = static_cast<size_t>(sizes_.value(layout.scratch_bytes));
  return out;
}

double Trial::run(std::vector<Call>& calls) const {
  // One thread's own time, whatever else the machine does.
  bool alone = get_num_threads() == 1;
  Clock::time_point begin = Clock::now();
  int64_t processor_begin = processor_time();
  for (Call& c : calls) {
    c.launch.slots = c.slots;
    device_.launch(c.launch, runtime::kDefaultStream);
  }
  if (alone) return static_cast<double>(processor_time() - processor_begin) * 1e-9;
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

Tuner::Tuner(runtime::Device& device, const Machine& machine, std::string options, ExampleSizes sizes, double seconds,
             size_t groups)
    : device_(device),
      machine_(machine),
      options_(std::move(options)),
      sizes_(std::move(sizes)),
      end_(Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds))),
      progress_(groups, /*lines=*/false) {}

int64_t Tuner::measured() { return count_of_measured.load(std::memory_order_relaxed); }

Schedule Tuner::best(const Group& group, const std::string& key, Schedule first) {
  progress_.next(str("measuring schedules of ", group.domain));
  if (group.kind != GroupKind::Contraction && group.kind != GroupKind::Loops) return first;
  std::string sizes;
  for (const ir::Input& in : group.graph->inputs())
    for (ir::Expr e : type_of(in.value).shape)
      if (!e.is_constant()) sizes += str(sizes_.known(e) ? sizes_.value(e) : -1, ",");
  std::string name =
      "t" + hash_name(str(kPipelineVersion, "\n", runtime::cpu::processor_model(), "\n", device_.properties().code,
                          options_, " ", machine_.threads, "\n", sizes, "\n", first, "\n", key));
  if (std::optional<std::string> kept = DiskCache::get().read(name)) {
    try {
      return parse_schedule(*kept, group.domain);
    } catch (const Error&) {  // it is measured again
    }
  }
  if (Clock::now() >= end_) return first;
  Schedule out = search(group, std::move(first));
  DiskCache::get().write(name, str(out));
  return out;
}

// One choice after the other: the fastest of its values stays.
Schedule Tuner::search(const Group& group, Schedule best) const {
  if (candidates(group, machine_, best).empty()) return best;
  Trial trial(group, device_, options_, sizes_);
  if (!trial.prepare()) return best;
  count_of_measured.fetch_add(1, std::memory_order_relaxed);
  double before = trial.measure({&best, 1})[0], part = 1;
  if (before < kWorthIt) return best;
  std::string usual = str(best);
  for (size_t choice = 0; Clock::now() < end_; ++choice) {
    std::vector<std::vector<Schedule>> sets = candidates(group, machine_, best);
    if (choice >= sets.size()) break;
    std::vector<Schedule> tried = std::move(sets[choice]);
    tried.push_back(best);
    std::vector<double> times = trial.measure(tried);
    auto least = static_cast<size_t>(std::min_element(times.begin(), times.end()) - times.begin());
    if (times[least] >= kGain * times.back()) continue;
    // Once more, as others may have used the machine.
    std::vector<double> again = trial.measure(std::vector{best, tried[least]});
    if (again[1] >= kGain * again[0]) continue;
    part *= again[1] / again[0];
    best = std::move(tried[least]);
  }
  if (logs("tune"))
    log_line("tune", str(group.domain, " ", before * 1e6, " us, ", part, " of that by ", best, " in place of ", usual));
  return best;
}

}  // namespace brasa::compiler
