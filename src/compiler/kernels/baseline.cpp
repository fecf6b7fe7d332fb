#include "compiler/kernels/baseline.h"

#include <map>
#include <mutex>
#include <utility>

#include "compiler/kernels/pack.h"
#include "compiler/loops/ops.h"
#include "support/error.h"
#include "support/log.h"
#include "support/settings.h"

namespace brasa::compiler {
namespace {

enum class Tiers : uint8_t { Both, Baseline, Optimized };

Tiers tiers() {
  static const Tiers chosen = [] {
    const char* given = environment("BRASA_TIERS");
    std::string_view name = given ? given : "both";
    BRASA_CHECK(name == "both" || name == "baseline" || name == "optimized", "BRASA_TIERS is '", name,
                "': both, baseline or optimized was expected");
    return name == "both" ? Tiers::Both : name == "baseline" ? Tiers::Baseline : Tiers::Optimized;
  }();
  return chosen;
}

// What has run for this part of what optimizing takes is likely to go on: loops of training do.
constexpr int64_t kPatience = 4;

}  // namespace

bool has_baseline(std::string_view text, std::string_view target) {
  if (tiers() == Tiers::Optimized || recording_pack()) return false;
  if (!target.starts_with("x86-64") || target.ends_with(";fast")) return false;
  for (LoopOp op : {LoopOp::Scan, LoopOp::PairProduct, LoopOp::TileProduct})
    if (text.find(loop_op(op)->name()) != text.npos) return false;
  // Updates of one element by several lanes.
  return text.find("combine=\"") == text.npos;
}

int64_t cost_of_optimizing(std::string_view text) {
  constexpr int64_t kOfACharacter = 5000;  // measured over kernels of all kinds, on a processor of 2023
  return tiers() == Tiers::Baseline ? INT64_MAX : kOfACharacter * static_cast<int64_t>(text.size());
}

BaselineKernel::BaselineKernel(std::string text, std::string options, runtime::Device& device,
                               std::shared_ptr<const runtime::Module> code, runtime::Function function)
    : text_(std::move(text)),
      options_(std::move(options)),
      device_(device),
      baseline_(std::move(code)),
      function_(function),
      budget_(cost_of_optimizing(text_) / kPatience),
      left_(budget_) {}

std::shared_ptr<BaselineKernel> baseline_kernel(const std::string& text, const std::string& options,
                                                runtime::Device& device, const LoadedKernel& code) {
  // A kernel keeps its code, so that no other one has its address.
  static std::mutex mutex;
  static auto* kernels = new std::map<runtime::Function, std::weak_ptr<BaselineKernel>>;
  static size_t sweep_at = 256;
  std::lock_guard lock(mutex);
  if (kernels->size() >= sweep_at) {
    std::erase_if(*kernels, [](const auto& k) { return k.second.expired(); });
    sweep_at = 2 * kernels->size() + 256;
  }
  std::weak_ptr<BaselineKernel>& known = (*kernels)[code.function];
  std::shared_ptr<BaselineKernel> kernel = known.lock();
  if (!kernel) {
    kernel = std::make_shared<BaselineKernel>(text, options, device, code.code, code.function);
    known = kernel;
  }
  return kernel;
}

void optimize(std::span<const std::shared_ptr<BaselineKernel>> kernels) {
  std::map<std::pair<runtime::Device*, std::string>, std::vector<BaselineKernel*>> groups;
  if (tiers() == Tiers::Baseline) return;
  for (const std::shared_ptr<BaselineKernel>& k : kernels)
    if (!k->optimized() && !k->claimed_.exchange(true)) groups[{&k->device_, k->options_}].push_back(k.get());
  for (const auto& [where, due] : groups) {
    std::vector<std::string> texts;
    for (const BaselineKernel* k : due) texts.push_back(k->text_);
    std::vector<LoadedKernel> loaded;
    try {
      loaded = load_kernels(texts, *where.first, where.second);
    } catch (const Error&) {
      return;  // the program is exiting, or the code generator is gone: what there is does as well
    }
    for (size_t i = 0; i < due.size(); ++i) {
      due[i]->code_ = loaded[i].code;
      due[i]->function_.store(loaded[i].function, std::memory_order_release);
      due[i]->optimized_.store(true, std::memory_order_release);
    }
    note_optimized(static_cast<int64_t>(due.size()));
    if (logs("cache")) log_line("cache", str(due.size(), " kernels that had baseline code are optimized"));
  }
}

}  // namespace brasa::compiler
