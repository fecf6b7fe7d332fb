#include "compiler/kernels/codegen_client.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <numeric>

#include "compiler/kernels/baseline.h"
#include "compiler/targets/codegen.h"
#include "compiler/version.h"
#include "ir/text.h"
#include "runtime/thread_pool.h"
#include "support/error.h"
#include "support/fresh_stack.h"
#include "support/lazy.h"
#include "support/mutex.h"
#include "support/processor_time.h"
#include "support/settings.h"

namespace brasa::compiler {
namespace {

std::atomic<bool> llvm_is_gone{false};

// While it lives, this thread is in the code generator, and another one that forks waits.
struct InCodegen {
  InCodegen() { detail::begin_lock(); }
  ~InCodegen() { detail::end_lock(); }
  InCodegen(const InCodegen&) = delete;
  InCodegen& operator=(const InCodegen&) = delete;
};

const BrasaCodegen& codegen() {
  static constinit Lazy<const BrasaCodegen&> loaded([]() -> auto& {
    std::vector<std::string> places;
    if (const char* path = environment("BRASA_CODEGEN"))
      places = {path};
    else
      for (const char* where : {"/", "/../lib/", "/../lib/brasa/"})
        places.push_back(own_folder() + where + "libbrasa-codegen.so");
    std::string why;
    for (const std::string& path : places) {
      void* library = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
      if (!library) {
        why += str("\n  ", dlerror());
        continue;
      }
      auto entry = reinterpret_cast<BrasaCodegenEntry>(dlsym(library, "brasa_codegen"));
      BRASA_CHECK(entry, path, " is not Brasa's code generator");
      BRASA_CHECK(entry()->version == kBrasaCodegenVersion && entry()->build == kCompilerVersion, path,
                  " belongs to another build of Brasa: this one is ", kCompilerVersion);
      // LLVM's own objects were made just now, so they are there until this is called.
      std::atexit([] { llvm_is_gone = true; });
      return *entry();
    }
    fail("the code generator could not be loaded (BRASA_CODEGEN may say where it is):" + why);
  });
  BRASA_CHECK(
      !llvm_is_gone,
      "kernels cannot be compiled any more: the program is exiting, and the code generator is gone. What static "
      "objects compute as they are destroyed must have been computed before");
  return *loaded;
}

constexpr size_t kRoom = size_t{2} << 20;

void take(void* context, const char* data, size_t size) { static_cast<std::string*>(context)->assign(data, size); }

// LLVM wants a stack of the usual size, whatever the thread has.
template <class F>
std::string answer(F f) {
  InCodegen call;
  std::string result;
  BrasaCodegenStatus status = with_room([&] { return f(&result); }, kRoom);
  if (status == kBrasaCodegenUserError) fail(std::move(result));
  if (status != kBrasaCodegenOk) fail_internal("code generator: " + result);
  return result;
}

}  // namespace

runtime::KernelImage compile_kernel_texts(std::span<const std::string> texts, std::string_view target) {
  std::vector<const char*> data;
  std::vector<size_t> sizes;
  for (const std::string& t : texts) {
    data.push_back(t.data());
    sizes.push_back(t.size());
  }
  return runtime::KernelImage::parse(answer([&](std::string* result) {
    return codegen().compile(data.data(), sizes.data(), data.size(), std::string(target).c_str(), take, result);
  }));
}

std::string codegen_path() {
  Dl_info info{};
  bool known = dladdr(reinterpret_cast<const void*>(codegen().compile), &info) != 0 && info.dli_fname;
  return known ? info.dli_fname : "";
}

std::string named(const std::string& text, const std::string& name) {
  constexpr std::string_view kStart = "graph loops \"";
  BRASA_ASSERT(text.starts_with(kStart) && text[kStart.size()] == '"', text.substr(0, 40));
  return str(kStart, name, text.substr(kStart.size()));
}

std::vector<runtime::KernelImage> compile_kernels_in_parallel(std::span<const std::string> texts,
                                                              std::string_view target) {
  // The largest first, each to the module that has the least so far.
  size_t modules = std::min<size_t>(texts.size(), static_cast<size_t>(get_num_threads()));
  std::vector<size_t> order(texts.size()), load(modules);
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return texts[a].size() > texts[b].size(); });
  std::vector<std::vector<std::string>> parts(modules);
  for (size_t i : order) {
    auto least = static_cast<size_t>(std::min_element(load.begin(), load.end()) - load.begin());
    load[least] += texts[i].size();
    parts[least].push_back(texts[i]);
  }
  std::vector<runtime::KernelImage> images(modules);
  runtime::parallel_for(static_cast<int64_t>(modules), 1, [&](int64_t begin, int64_t end) {
    for (int64_t m = begin; m < end; ++m) {
      int64_t start = processor_time();
      images[m] = compile_kernel_texts(parts[m], target);
      note_cost(target, parts[m], processor_time() - start);
    }
  });
  return images;
}

std::string show_kernel(const ir::Graph& graph, std::string_view target, std::string_view stage) {
  std::string text = ir::print(graph);
  return answer([&](std::string* result) {
    return codegen().show(text.data(), text.size(), std::string(target).c_str(), std::string(stage).c_str(), take,
                          result);
  });
}

std::string own_folder() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<void*>(&own_folder), &info) || !info.dli_fname) return "";
  std::string path = info.dli_fname;
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

}  // namespace brasa::compiler
