#include "compiler/passes/pass_runner.h"

#include <chrono>
#include <cstdio>

#include "ir/legality.h"
#include "support/log.h"
#include "support/settings.h"
#include "support/str.h"

namespace brasa::compiler {

namespace {

void show(std::string_view name, const std::string& before, const std::string& after) {
  std::string text = str("--- ", name, before == after ? " (unchanged)" : "", "\n", before == after ? "" : after);
  std::fputs(text.c_str(), stderr);
}

}  // namespace

bool PassRunner::switched_off(std::string_view name) {
  const char* text = environment("BRASA_DISABLE_PASSES");
  return text && str(",", text, ",").find(str(",", name, ",")) != std::string::npos;
}

bool PassRunner::shows_passes() {
  return logs("graph") || logs("groups") || logs("plan") || logs("fusion") || logs("loops");
}

void PassRunner::run(const GraphPass& pass, Primitives& p, const PassContext& context) {
  if (pass.optional && switched_off(pass.name)) return;
  run(pass.name, p, [&] { pass.run(p, context); });
}

void PassRunner::run(std::string_view name, Primitives& p, const std::function<void()>& step) {
  bool log = logs("graph");
  std::string before = log && p.graph ? str(p) : "";
  run(name, "", step);
#ifndef NDEBUG
  p.defined ? ir::check_legal(*p.graph, p.defined->first) : ir::check_legal(*p.graph);
#endif
  if (log) show(name, before, str(p));
}

void PassRunner::run(std::string_view name, std::string_view topic, const std::function<void()>& step,
                     const std::function<std::string()>& text) {
  auto start = std::chrono::steady_clock::now();
  step();
  report_.seconds.emplace_back(name, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  if (text && logs(topic)) show(name, "", text());
}

}  // namespace brasa::compiler
