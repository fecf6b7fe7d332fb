#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/graph.h"
#include "ir/text.h"

namespace brasa::ir {

/// What the names of a rule's left side stand for, at one node.
class Match {
 public:
  const Type& result() const { return *result_; }
  const Arg& operator[](std::string_view name) const;  // InternalError if nothing has that name
  template <class T>
  const T& get(std::string_view name) const {
    return (*this)[name].get<T>();
  }
  const Type& type(std::string_view name) const { return type_of(get<Value>(name)); }
  /// A name for the right side. What the left side bound stays where it is.
  void let(std::string_view name, Arg value) { made_.emplace_back(name, std::move(value)); }

 private:
  friend class RuleSet;
  friend class Rewriter;
  const Type* result_ = nullptr;
  std::vector<std::pair<std::string_view, Arg>> bound_, made_;
};

/// One line of algebra: "add(x, -0) -> x". Functions are ops, by the names that the rule set's finder knows; lower-case names are
/// operands or attributes, equal where a name repeats; `_` is anything. A number where a tensor is expected is a constant
/// of that value in every element: 0 is not -0. Operands of an op that commutes match in either order. `where` may refuse a match,
/// and may name more for the right side.
struct Rule {
  const char* text;
  bool (*where)(Match& m) = nullptr;
};

/// Rules by the op at their root.
class RuleSet {
 public:
  /// `find("mul")` gives the op of that name; `find("full")` the op of constants, `full(value, size, dtype)`.
  RuleSet(std::span<const Rule> rules, const OpFinder& find);
  ~RuleSet();
  RuleSet(const RuleSet&) = delete;
  RuleSet& operator=(const RuleSet&) = delete;

 private:
  friend class Rewriter;
  struct Pattern;
  struct Compiled;
  Pattern parse(std::string_view& text, const OpFinder& find) const;
  bool match(const Pattern& p, const Arg& a, Match& m) const;
  bool match_args(const Pattern& p, const Args& args, Match& m) const;

  const Op* full_;
  std::unordered_map<const Op*, std::vector<Compiled>> by_root_;
};

/// A copy without dead nodes in which no rule matches any more. Results keep their types, and outputs their places. `applied`
/// counts the matches.
std::unique_ptr<Graph> rewrite(const Graph& graph, const RuleSet& rules, size_t* applied = nullptr);

}  // namespace brasa::ir
