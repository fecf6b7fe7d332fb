// A code generator that fails as BRASA_FAKE_CODEGEN says. What it does not fail at goes to the real one, BRASA_REAL_CODEGEN.
#include "compiler/targets/codegen.h"

#include <dlfcn.h>

#include <cstdlib>
#include <string_view>

namespace {

std::string_view failure() {
  const char* name = std::getenv("BRASA_FAKE_CODEGEN");
  return name ? name : "";
}

const BrasaCodegen& real() {
  static const BrasaCodegen* found = [] {
    void* library = dlopen(std::getenv("BRASA_REAL_CODEGEN"), RTLD_LAZY | RTLD_LOCAL);
    return reinterpret_cast<BrasaCodegenEntry>(dlsym(library, "brasa_codegen"))();
  }();
  return *found;
}

BrasaCodegenStatus compile(const char* const* texts, const size_t* sizes, size_t count, const char* target,
                           BrasaCodegenSink sink, void* context) {
  auto says = [&](std::string_view text, BrasaCodegenStatus status) {
    sink(context, text.data(), text.size());
    return status;
  };
  std::string_view how = failure();
  bool optimizes = !std::string_view(target).ends_with(";baseline");
  if (how == "refuses" || (how == "refuses to optimize" && optimizes))
    return says("no code for this kernel", kBrasaCodegenUserError);
  if (how == "breaks" || (how == "breaks as it optimizes" && optimizes))
    return says("a pass broke the graph", kBrasaCodegenInternalError);
  if (how == "garbage") return says("what no image begins with", kBrasaCodegenOk);
  if (how == "silence") return kBrasaCodegenOk;
  return real().compile(texts, sizes, count, target, sink, context);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const BrasaCodegen* brasa_codegen() {
  static const BrasaCodegen fake = {failure() == "other version" ? kBrasaCodegenVersion + 1 : kBrasaCodegenVersion,
                                    failure() == "other build" ? "brasa-0" : real().build, compile, real().show};
  return &fake;
}
