#include <algorithm>
#include <unordered_map>

#include "support/error.h"
#include "support/lazy.h"
#include "support/mutex.h"
#include "support/words.h"
#include "tensor/dispatch.h"
#include "transforms/derived.h"

// What dispatch keeps for each row.
namespace brasa::eager {
namespace {

std::string camel_case(std::string_view name) {
  std::string out;
  bool up = true;
  for (char c : name) {
    if (c == '_') {
      up = true;
    } else {
      out += up ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
      up = std::isdigit(static_cast<unsigned char>(c)) != 0;
    }
  }
  return out;
}

// PyTorch numbers the nodes of an operator's overloads in order.
std::string node_name(const ops::Row& row) {
  if (!row.backward_node.empty()) return row.backward_node;
  return str(camel_case(row.schema.base), "Backward", row.overload);
}

}  // namespace

Operator::Operator(const ops::Row& row)
    : row_(row), backward_name_(node_name(row)), memory_(memory_function(row.memory)) {
  if (row.sparse == ops::Sparse::Embedding || row.sparse == ops::Sparse::EmbeddingBag)
    sparse_gradient_ = row.schema.index_of("sparse");
  bool takes_tensors = std::any_of(row.schema.params.begin(), row.schema.params.end(),
                                   [](const ir::Param& p) { return p.type == ir::ParamType::Tensor; });
  for (const ir::Param& p : row.schema.params) {
    if (!takes_tensors && p.name == "dtype" && p.optional && !(p.default_value && p.default_value->get_if<DType>()))
      dtype_parameter_ = static_cast<int>(parameters_.size());
    if (p.type == ir::ParamType::Layout) layout_parameter_ = static_cast<int>(parameters_.size());
    Parameter q{p.type, p.list, {}, p.use, p.special};
    mutates_ = mutates_ || p.mutated;
    places_ = places_ || (p.type == ir::ParamType::Tensor && (p.name == "index" || p.name == "indices"));
    if (p.default_value && p.type != ir::ParamType::Tensor && !p.list) {
      const ir::Arg& a = *p.default_value;
      if (auto* e = a.get_if<ir::Expr>()) q.default_number = Scalar(e->constant());
      if (auto* d = a.get_if<double>()) q.default_number = Scalar(*d);
      if (auto* b = a.get_if<bool>()) q.default_number = Scalar(*b);
    }
    parameters_.push_back(std::move(q));
  }
  bool lists = std::any_of(parameters_.begin(), parameters_.end(),
                           [](const Parameter& p) { return p.type == ir::ParamType::Tensor && p.list; });
  plain_ = !lists && !memory_ && !mutates_ && dtype_parameter_ < 0 && layout_parameter_ < 0 && sparse_gradient_ < 0 &&
           row.fitting == 0 && !row.view && !row.count && !row.number_count && !row.bounds && !row.precondition &&
           row.itself_unless < 0;
  casts_ = row.autocast != ops::Autocast::None || row.autocast_on_gpus != ops::Autocast::None;
}

const RowComputation* Operator::find(const Words& words) {
  auto same = [&](const Known* k) { return k && same_words(k->words, words); };
  const Known* known = last_.load(std::memory_order_acquire);
  if (same(known)) [[likely]]
    return known->computation.get();
  std::lock_guard lock(mutex_);
  auto it = programs_.find(words.vec());
  if (it == programs_.end()) return nullptr;
  last_.store(it->second.get(), std::memory_order_release);
  return it->second->computation.get();
}

const RowComputation& Operator::add(const Words& words, std::unique_ptr<RowComputation> computation) {
  std::lock_guard lock(mutex_);
  auto& entry = programs_[words.vec()];
  // Another thread may have been first; its computation is in use.
  if (!entry) entry = std::make_unique<Known>(Known{words.vec(), std::move(computation)});
  last_.store(entry.get(), std::memory_order_release);
  return *entry->computation;
}

namespace {

struct Operators {
  std::vector<std::unique_ptr<Operator>> by_index;
  std::unordered_map<const ops::Row*, Operator*> by_row;
  SharedMutex mutex;
  std::vector<std::unique_ptr<Operator>> derived;

  Operators() {
    for (const ops::Row& row : ops::table().rows()) {
      by_index.push_back(std::make_unique<Operator>(row));
      by_row.emplace(&row, by_index.back().get());
    }
  }
  static Operators& get() {
    static constinit Lazy<Operators> all;
    return *all;
  }
};

}  // namespace

Operator& op(size_t index) { return *Operators::get().by_index[index]; }

Operator& op(const ops::Row& row) {
  Operators& all = Operators::get();
  {
    std::shared_lock lock(all.mutex);
    auto it = all.by_row.find(&row);
    if (it != all.by_row.end()) return *it->second;
  }
  std::lock_guard lock(all.mutex);
  auto [it, fresh] = all.by_row.emplace(&row, nullptr);
  if (fresh) {
    all.derived.push_back(std::make_unique<Operator>(row));
    it->second = all.derived.back().get();
  }
  return *it->second;
}

Operator& op(std::string_view name) {
  const ops::Row* row = transforms::find_row(name);
  BRASA_CHECK(row, "there is no operator '", name, "'");
  return op(*row);
}

Operator& Operator::backward(const std::vector<bool>& needs, const std::vector<bool>& given) {
  std::lock_guard lock(mutex_);
  Operator*& known = backwards_[{needs, given}];
  if (!known) known = &op(transforms::vjp_row(row_, needs, given));
  return *known;
}

}  // namespace brasa::eager
