#include "compiler/kernels/kernels.h"

#include <map>
#include <mutex>
#include <unordered_map>

#include "compiler/kernels/baseline.h"
#include "compiler/kernels/codegen_client.h"
#include "compiler/kernels/disk_cache.h"
#include "compiler/kernels/pack.h"
#include "compiler/loops/ops.h"
#include "compiler/version.h"
#include "ir/text.h"
#include "runtime/spans.h"
#include "support/error.h"
#include "support/hash.h"
#include "support/lazy.h"
#include "support/log.h"
#include "support/mutex.h"

namespace brasa::compiler {
namespace {

// The kernels that something in this process runs; what nobody holds any more is loaded again when it is asked for.
class Loaded {
 public:
  LoadedKernel find(const runtime::Device& device, const std::string& key) const {
    auto it = kernels_.find({&device, key});
    if (it == kernels_.end()) return {};
    std::shared_ptr<const runtime::Module> code = it->second.code.lock();
    return code ? LoadedKernel{std::move(code), it->second.function} : LoadedKernel{};
  }
  void add(const runtime::Device& device, const std::string& key, const LoadedKernel& kernel) {
    if (kernels_.size() >= sweep_at_) {
      std::erase_if(kernels_, [](const auto& k) { return k.second.code.expired(); });
      sweep_at_ = 2 * kernels_.size() + kLeast;
    }
    kernels_[{&device, key}] = {kernel.code, kernel.function};
  }

 private:
  struct Known {
    std::weak_ptr<const runtime::Module> code;
    runtime::Function function = nullptr;
  };
  static constexpr size_t kLeast = 256;
  std::map<std::pair<const runtime::Device*, std::string>, Known> kernels_;
  size_t sweep_at_ = kLeast;
};

Mutex g_mutex;
Loaded& loaded() {
  static constinit Lazy<Loaded> kernels;
  return *kernels;
}
KernelCounts g_counts;

std::string key_of(const std::string& text, const std::string& target) {
  // A letter first: the key becomes a name in assembly text.
  return "k" + hash_name(str(kCompilerVersion, "\n", target, "\n", text));
}

LoadedKernel kernel_of(const std::shared_ptr<const runtime::Module>& code, const std::string& name) {
  return {code, code->kernel(name)};
}

// On disk a kernel's entry is the name of the image that holds it, so that kernels compiled together are stored once.
LoadedKernel read_from_disk(const std::string& key, runtime::Device& device,
                            std::unordered_map<std::string, std::shared_ptr<const runtime::Module>>& images) {
  auto name = DiskCache::get().read(key);
  if (!name) return {};
  try {
    std::shared_ptr<const runtime::Module>& image = images[*name];
    if (!image) {
      auto bytes = DiskCache::get().read(*name);
      if (!bytes) return {};
      image = device.load(runtime::KernelImage::parse(*bytes));
    }
    return kernel_of(image, key);
  } catch (const Error&) {
    return {};  // not of this version or not for this machine: it is compiled again
  }
}

}  // namespace

KernelCounts kernel_counts() {
  std::lock_guard lock(g_mutex);
  return g_counts;
}

void note_optimized(int64_t kernels) {
  std::lock_guard lock(g_mutex);
  g_counts.optimized += kernels;
}

namespace {

// What the kernel needs of this target: one that adds no pairs is the same on the processors that cannot, as it is in the pack.
std::string needed(std::string target, const std::string& text) {
  struct Feature {
    std::string_view name;
    LoopOp used_by;
    std::string_view otherwise;
  };
  auto has = [&](LoopOp op) { return text.find(loop_op(op)->name()) != text.npos; };
  for (auto [name, op, otherwise] : {Feature{"+amx", LoopOp::TileProduct, ""},
                                     {"+bf16", LoopOp::PairProduct, "+vnni"},
                                     {"+vnni", LoopOp::QuadProduct, ""}}) {
    if (!target.ends_with(name)) continue;
    if (has(op)) break;
    target.replace(target.size() - name.size(), name.size(), otherwise);
  }
  return target;
}

// All for one target. What is nowhere and not to be compiled stays empty.
std::vector<LoadedKernel> load_for(const std::string& target, std::span<const std::string> texts,
                                   std::vector<bool> to_be_compiled, runtime::Device& device) {
  std::vector<LoadedKernel> out(texts.size());
  std::vector<std::string> keys;
  for (const std::string& t : texts) keys.push_back(key_of(t, target));
  std::vector<size_t> missing;
  std::unordered_map<std::string, size_t> first;
  {
    std::lock_guard lock(g_mutex);
    for (size_t i = 0; i < texts.size(); ++i) {
      if (LoadedKernel known = loaded().find(device, keys[i])) {
        out[i] = std::move(known);
        ++g_counts.memory;
      } else if (auto [it, added] = first.emplace(keys[i], i); added) {
        missing.push_back(i);
      } else if (to_be_compiled[i]) {
        to_be_compiled[it->second] = true;
      }
    }
  }
  auto keep = [&](size_t i, const LoadedKernel& k, int64_t KernelCounts::* source) {
    std::lock_guard lock(g_mutex);
    loaded().add(device, keys[i], k);
    ++(g_counts.*source);
    out[i] = k;
  };
  std::vector<std::string> to_compile;
  std::vector<size_t> compiled;
  std::unordered_map<std::string, std::shared_ptr<const runtime::Module>> images;
  for (size_t i : missing) {
    if (LoadedKernel k = find_in_pack(keys[i], device)) {
      keep(i, k, &KernelCounts::pack);
    } else if (!recording_pack() && (k = read_from_disk(keys[i], device, images))) {
      keep(i, k, &KernelCounts::disk);
    } else if (to_be_compiled[i]) {
      if (logs("cache"))
        log_line("cache",
                 str("no ", keys[i], " for ", target, " in this process, the pack, or '", DiskCache::get().folder(),
                     "': its text is new, or the compiler is (", kCompilerVersion, ")"));
      to_compile.push_back(named(texts[i], keys[i]));
      compiled.push_back(i);
    }
  }
  if (!to_compile.empty()) {
    if (logs("code"))
      for (const std::string& text : to_compile)
        log_line("code", show_kernel(*ir::parse(text, find_loop_level_op), target, "assembly"));
    std::unordered_map<std::string, size_t> by_key;
    for (size_t i : compiled) by_key[keys[i]] = i;
    std::vector<runtime::KernelImage> made;
    {
      runtime::HostSpan span(runtime::SpanKind::Compilation, str(to_compile.size(), " kernels"));
      made = compile_kernels_in_parallel(to_compile, target);
    }
    for (const runtime::KernelImage& image : made) {
      std::shared_ptr<const runtime::Module> code = device.load(image);
      for (const runtime::KernelEntry& e : image.entries)
        if (auto it = by_key.find(e.name); it != by_key.end())
          keep(it->second, kernel_of(code, e.name), &KernelCounts::compiled);
      std::string bytes = image.serialize(), name = hash_name(bytes) + ".image";
      add_to_pack(image);
      DiskCache::get().write(name, bytes);
      for (const runtime::KernelEntry& e : image.entries)
        if (by_key.count(e.name)) DiskCache::get().write(e.name, name);
    }
  }
  for (size_t i = 0; i < texts.size(); ++i) {
    if (!out[i]) out[i] = out[first.at(keys[i])];
    BRASA_ASSERT(out[i] || !to_be_compiled[i], "no code for a kernel:\n", texts[i]);
  }
  return out;
}

}  // namespace

std::vector<LoadedKernel> load_kernels(std::span<const std::string> texts, runtime::Device& device,
                                       const std::string& options, std::span<const KernelCost> costs) {
  auto begins_with_baseline = [&](size_t i) {
    return !costs.empty() && is_quick(costs[i]) && has_baseline(texts[i], device.properties().code + options);
  };
  std::map<std::string, std::vector<size_t>> by_target;
  for (size_t i = 0; i < texts.size(); ++i)
    by_target[needed(device.properties().code, texts[i]) + options].push_back(i);
  std::vector<LoadedKernel> out(texts.size());
  auto load = [&](const std::string& target, const std::vector<size_t>& places, const std::vector<bool>& compiled) {
    std::vector<std::string> wanted;
    for (size_t i : places) wanted.push_back(texts[i]);
    std::vector<LoadedKernel> loaded = load_for(target, wanted, compiled, device);
    for (size_t i = 0; i < places.size(); ++i) out[places[i]] = std::move(loaded[i]);
  };
  for (const auto& [target, places] : by_target) {
    std::vector<bool> compiled;
    for (size_t i : places) compiled.push_back(!begins_with_baseline(i));
    load(target, places, compiled);
    std::vector<size_t> rest;
    for (size_t i : places)
      if (!out[i]) rest.push_back(i);
    if (rest.empty()) continue;
    load(target + ";baseline", rest, std::vector<bool>(rest.size(), true));
    for (size_t i : rest) out[i].baseline = baseline_kernel(texts[i], costs[i].code, options, device, out[i]);
  }
  return out;
}

}  // namespace brasa::compiler
