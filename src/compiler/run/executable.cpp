#include "compiler/run/executable.h"

#include <algorithm>

#include "support/error.h"

namespace brasa::compiler {

Executable::~Executable() = default;

Executable::Executable(const ir::Graph& graph) : name_(graph.name) {
  std::vector<bool> bound;
  auto source = [&](ir::Expr e, size_t input, size_t dim, bool stride) {
    if (e->kind != ir::ExprKind::Size) return;
    if (bound.size() <= e->id) bound.resize(e->id + 1);
    if (bound[e->id]) return;
    bound[e->id] = true;
    sources_.push_back({e->id, static_cast<uint32_t>(input), static_cast<uint32_t>(dim), stride});
  };
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const ir::Shape& shape = ir::type_of(graph.inputs()[i].value).shape;
    for (size_t d = 0; d < shape.size(); ++d) source(shape[d], i, d, false);
    const auto& strides = graph.inputs()[i].strides;
    for (size_t d = 0; d < strides.size(); ++d) source(strides[d], i, d, true);
  }
  symbol_count_ = bound.size();
  for (const ir::Output& o : graph.outputs())
    if (o.check.empty() && o.into < 0) output_types_.push_back(ir::type_of(o.value));
}

void Executable::bind(std::span<const Operand> inputs, int64_t* symbols) const {
  for (const Source& s : sources_)
    symbols[s.symbol] = s.stride ? inputs[s.input].strides[s.dim] : inputs[s.input].sizes[s.dim];
}

void Executable::fail_check(const std::string& message, const int64_t* symbols) const {
  fail_index(substituted(message, symbols));
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
  return ir::evaluate(e, [&](const ir::ExprNode& s) { return symbols[s.id]; });
}

}  // namespace brasa::compiler
