#include "compiler/run/executable.h"

#include <algorithm>
#include <atomic>

#include "ir/expr_walk.h"
#include "support/failed_check.h"

namespace brasa::compiler {

Executable::~Executable() = default;

namespace {

// Of a graph's inputs: one more than the largest id.
size_t symbols_of(const ir::Graph& graph) {
  size_t count = 0;
  for (const ir::Input& in : graph.inputs())
    for (const auto* list : {&ir::type_of(in.value).shape, &in.strides})
      for (ir::Expr e : *list)
        if (e->kind == ir::ExprKind::Size) count = std::max<size_t>(count, e->id + 1);
  return count;
}

}  // namespace

Executable::Executable(const ir::Graph& graph) : name_(graph.name), symbol_count_(symbols_of(graph)) {
  for (const ir::Output& o : graph.outputs())
    if (o.check.empty() && o.into < 0) output_types_.push_back(ir::type_of(o.value));
}

uint64_t new_content() {
  static std::atomic<uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

void Executable::fail_check(const std::string& message, const int64_t* symbols) const {
  fail_checked(substituted(message, symbols));
}

std::string Executable::check_text(const std::string& message, const int64_t* symbols) const {
  std::string text = substituted(message, symbols);
  return name_.empty() || text.find(name_) != text.npos ? text : str(name_, ": ", text);
}

std::string Executable::substituted(const std::string& message, const int64_t* symbols) const {
  auto digit = [](char c) { return c >= '0' && c <= '9'; };
  auto word = [&](char c) { return digit(c) || c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  std::string text;
  for (size_t i = 0; i < message.size();) {
    size_t end = i + 1, id = 0;
    if (message[i] == 's' && (i == 0 || !word(message[i - 1])))
      for (; end < message.size() && digit(message[end]); ++end) id = 10 * id + static_cast<size_t>(message[end] - '0');
    if (end > i + 1 && id < symbol_count_ && (end == message.size() || !word(message[end])))
      text += str(symbols[id]);
    else
      text.append(message, i, end - i);
    i = end;
  }
  return text;
}

int64_t Executable::evaluate(ir::Expr e, const int64_t* symbols) {
  if (e.is_constant()) return e->value;
  if (e->kind == ir::ExprKind::Size) return symbols[e->id];
  size_t count = 0;
  for (const ir::Expr& s : *e->symbols) count = std::max<size_t>(count, s->id + 1);
  return ir::value_of(e, {symbols, count});
}

}  // namespace brasa::compiler
