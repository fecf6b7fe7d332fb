#include <brasa/state_dict.h>

#include <algorithm>
#include <map>
#include <string_view>

#include <brasa/brasa.h>

#include "support/error.h"

namespace brasa::io {
namespace {

using Texts = std::vector<std::string>;

// Of `*` or `**` at the pattern's begin.
size_t wildcard(std::string_view pattern) {
  if (pattern.starts_with("**")) return 2;
  return pattern.starts_with('*') ? 1 : 0;
}

size_t wildcards(std::string_view pattern) {
  size_t count = 0;
  for (size_t i = 0; i < pattern.size();) {
    size_t w = wildcard(pattern.substr(i));
    count += w > 0;
    i += std::max<size_t>(w, 1);
  }
  return count;
}

// Whether the name is of the pattern; `texts` gets what its wildcards stand for, each as long as it can be.
bool matches(std::string_view pattern, std::string_view name, Texts& texts) {
  size_t w = wildcard(pattern);
  if (w == 0) {
    if (pattern.empty()) return name.empty();
    return !name.empty() && name[0] == pattern[0] && matches(pattern.substr(1), name.substr(1), texts);
  }
  for (size_t n = (w == 2 ? name.size() : std::min(name.find('.'), name.size())) + 1; n-- > 0;) {
    texts.emplace_back(name.substr(0, n));
    if (matches(pattern.substr(w), name.substr(n), texts)) return true;
    texts.pop_back();
  }
  return false;
}

std::string filled(std::string_view pattern, const Texts& texts) {
  std::string out;
  size_t next = 0;
  for (size_t i = 0; i < pattern.size();) {
    size_t w = wildcard(pattern.substr(i));
    out += w > 0 ? texts[next++] : std::string(1, pattern[i]);
    i += std::max<size_t>(w, 1);
  }
  return out;
}

std::string listed(const Texts& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "'" : ", '") + name + "'";
  return out;
}

NameRule rule(NameRule::Kind kind, Texts from, Texts to, int64_t dim = 0) {
  BRASA_CHECK(!from.empty(), "a rule of names has no pattern");
  size_t count = wildcards(from[0]);
  for (const Texts* side : {&from, &to})
    for (const std::string& pattern : *side)
      BRASA_CHECK(wildcards(pattern) == count, "a rule of names has ", count, " wildcards in '", from[0], "' and ",
                  wildcards(pattern), " in '", pattern, "'");
  return {kind, std::move(from), std::move(to), dim};
}

// What one rule makes of a dictionary.
class Step {
 public:
  explicit Step(const NameRule& rule) : rule_(rule) {}

  TensorDict apply(const TensorDict& in) {
    for (const auto& [name, tensor] : in)
      if (!take(name, tensor)) put(name, tensor);
    for (const auto& [texts, parts] : joined_) put(filled(rule_.to[0], texts), whole(texts, parts));
    return std::move(out_);
  }

 private:
  using Kind = NameRule::Kind;

  bool take(const std::string& name, const Tensor& tensor) {
    for (size_t part = 0; part < rule_.from.size(); ++part) {
      Texts texts;
      if (!matches(rule_.from[part], name, texts)) continue;
      change(name, tensor, part, texts);
      return true;
    }
    return false;
  }

  void change(const std::string& name, const Tensor& tensor, size_t part, const Texts& texts) {
    switch (rule_.kind) {
      case Kind::Drop: break;
      case Kind::Copy: put(name, tensor); [[fallthrough]];
      case Kind::Rename: put(filled(rule_.to[0], texts), tensor); break;
      case Kind::Transpose:
        BRASA_CHECK(tensor.dim() == 2, "'", name, "' has sizes ", tensor.sizes(), "; a rule transposes matrices only");
        put(name, tensor.t());
        break;
      case Kind::Join: {
        auto& parts = joined_[texts];
        parts.resize(rule_.from.size());
        parts[part] = tensor;
        break;
      }
      case Kind::Split: {
        auto count = static_cast<int64_t>(rule_.to.size());
        BRASA_CHECK(rule_.dim < tensor.dim() && tensor.size(rule_.dim) % count == 0, "'", name, "' has sizes ",
                    tensor.sizes(), "; a rule splits its dimension ", rule_.dim, " into ", count, " equal parts");
        int64_t size = tensor.size(rule_.dim) / count;
        for (int64_t i = 0; i < count; ++i)
          put(filled(rule_.to[static_cast<size_t>(i)], texts), tensor.narrow(rule_.dim, i * size, size));
      }
    }
  }

  Tensor whole(const Texts& texts, const std::vector<Tensor>& parts) const {
    Texts missing;
    for (size_t i = 0; i < parts.size(); ++i)
      if (!parts[i].defined()) missing.push_back(filled(rule_.from[i], texts));
    std::string to = filled(rule_.to[0], texts);
    BRASA_CHECK(missing.empty(), "'", to, "' is joined of ", parts.size(), " tensors; there is no ", listed(missing));
    auto dim = static_cast<size_t>(rule_.dim);
    std::vector<int64_t> first = parts[0].sizes().vec();
    for (size_t i = 0; i < parts.size(); ++i) {
      const Tensor& t = parts[i];
      std::vector<int64_t> sizes = t.sizes().vec();
      if (dim < sizes.size() && dim < first.size()) sizes[dim] = first[dim];
      BRASA_CHECK(dim < first.size() && sizes == first && t.scalar_type() == parts[0].scalar_type(), "'", to,
                  "' cannot be joined along dimension ", rule_.dim, ": '", filled(rule_.from[i], texts), "' is ",
                  name(t.scalar_type()), t.sizes(), ", '", filled(rule_.from[0], texts), "' ",
                  name(parts[0].scalar_type()), parts[0].sizes());
    }
    return cat(parts, rule_.dim);
  }

  void put(const std::string& name, const Tensor& tensor) {
    BRASA_CHECK(out_.emplace(name, tensor).second, "two tensors get the name '", name, "' by a rule of names");
  }

  const NameRule& rule_;
  TensorDict out_;
  std::map<Texts, std::vector<Tensor>> joined_;
};

}  // namespace

NameRule rename(std::string from, std::string to) {
  return rule(NameRule::Kind::Rename, {std::move(from)}, {std::move(to)});
}
NameRule copy(std::string from, std::string to) {
  return rule(NameRule::Kind::Copy, {std::move(from)}, {std::move(to)});
}
NameRule drop(std::string name) { return rule(NameRule::Kind::Drop, {std::move(name)}, {}); }
NameRule transpose(std::string name) { return rule(NameRule::Kind::Transpose, {std::move(name)}, {}); }
NameRule join(std::vector<std::string> from, std::string to, int64_t dim) {
  BRASA_CHECK(dim >= 0, "tensors are joined along dimension ", dim, ", expected 0 or more");
  return rule(NameRule::Kind::Join, std::move(from), {std::move(to)}, dim);
}
NameRule split(std::string from, std::vector<std::string> to, int64_t dim) {
  BRASA_CHECK(!to.empty() && dim >= 0, "a tensor is split into ", to.size(), " parts along dimension ", dim);
  return rule(NameRule::Kind::Split, {std::move(from)}, std::move(to), dim);
}

TensorDict apply_rules(TensorDict tensors, const NameRules& rules) {
  NoGradGuard no_grad;
  for (const NameRule& rule : rules) tensors = Step(rule).apply(tensors);
  return tensors;
}

LoadedStateDict assign(const TensorDict& to, const TensorDict& tensors, bool strict) {
  LoadedStateDict out;
  std::string errors;
  auto expect_none = [&](const char* what, const Texts& names) {
    if (strict && !names.empty()) errors += str("\n  ", names.size(), " ", what, ": ", listed(names));
  };
  for (const auto& [name, tensor] : to)
    if (!tensors.contains(name)) out.missing.push_back(name);
  for (const auto& [name, tensor] : tensors)
    if (!to.contains(name)) out.unexpected.push_back(name);
  expect_none("missing", out.missing);
  expect_none("unexpected", out.unexpected);
  for (const auto& [name, tensor] : to) {
    auto given = tensors.find(name);
    if (given != tensors.end() && given->second.sizes() != tensor.sizes())
      errors += str("\n  '", name, "' has sizes ", given->second.sizes(), ", expected ", tensor.sizes());
  }
  BRASA_CHECK(errors.empty(), "the state dictionary is not the module's:", errors);
  NoGradGuard no_grad;
  for (const auto& [name, tensor] : to) {
    auto given = tensors.find(name);
    if (given != tensors.end()) Tensor(tensor).copy_(given->second);
  }
  return out;
}

}  // namespace brasa::io
