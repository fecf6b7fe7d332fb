#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <string_view>

#include <brasa/factories.h>

#include "io/tensors.h"
#include "support/error.h"

// Optimizers as LibTorch's `torch::save` writes them:
//     {pytorch_version, state: {key: {field: value, …}, …},
//      param_groups: {param_groups/size, param_groups/0: {params/size, params/0: key, …, options: {…}}, …}}
// A key was the address of the parameter. In Brasa's archives it is the parameter's number, and numbers are tensors (optim/optimizer.cpp).
namespace brasa::io {
namespace {

using pickle::Value;
using Kind = Value::Kind;

class Converter {
 public:
  Converter(const Value& root, size_t file_bytes, const std::string& source)
      : root_(root), left_(file_bytes), source_(source) {}

  serialize::Contents convert() {
    Fields groups = fields_of(root_.at("param_groups")), states = fields_of(root_.at("state"));
    size_t parameter = 0, count = listed(groups, "param_groups/");
    for (size_t g = 0; g < count; ++g) {
      Fields group = fields_of(*groups.at(str("param_groups/", g)));
      std::string to = str("param_groups.", g, ".");
      size_t params = listed(group, "params/");
      number(to + "params", static_cast<double>(params));
      for (const char* name : {"maximize", "decoupled_weight_decay"})
        number(to + name, 0);  // which LibTorch's have not
      put(fields_of(at(group, "options")), to);
      for (size_t p = 0; p < params; ++p, ++parameter) {
        auto state = states.find(group.at(str("params/", p))->text());
        if (state != states.end()) put(fields_of(*state->second), str("state.", parameter, "."));
      }
    }
    return std::move(out_);
  }

 private:
  using Fields = std::map<std::string_view, const Value*, std::less<>>;
  Fields fields_of(const Value& v) const {
    Fields out;
    for (const auto& [key, value] : v.pairs()) {
      BRASA_CHECK(key.is_string(), source_, ": a field of an optimizer is named by a ", key.kind_name());
      out.emplace(key.text(), &value);
    }
    return out;
  }
  const Value& at(const Fields& fields, const std::string& name) const {
    auto found = fields.find(name);
    BRASA_CHECK(found != fields.end(), source_, ": an optimizer without '", name, "'");
    return *found->second;
  }
  // How many of a list's items there are, whose names are the prefix and a number.
  size_t listed(const Fields& fields, const std::string& prefix) const {
    size_t count = 0;
    while (fields.contains(str(prefix, count))) ++count;
    const Tensor& size = at(fields, prefix + "size").to_tensor();
    BRASA_CHECK(size.numel() == 1 && size.item<int64_t>() == static_cast<int64_t>(count), source_, ": '", prefix,
                "size' is not ", count, ", the number of its items");
    return count;
  }

  void number(const std::string& name, double x) { tensor(name, scalar_tensor(x, kFloat64)); }
  void tensor(const std::string& name, const Tensor& t) {
    // A file may refer to one state again and again.
    BRASA_CHECK(left_-- > 0, source_, ": its optimizer has more fields than the file has bytes");
    out_.tensors[name] = t;
  }

  void put(const Fields& fields, const std::string& below) {
    for (const auto& [key, value] : fields) field(str(below, key), *value);
  }

  void field(const std::string& name, const Value& v) {
    switch (v.kind()) {
      case Kind::Tensor: tensor(name, v.to_tensor()); break;
      case Kind::Bool: number(name, v.to_bool()); break;
      case Kind::Int:
      case Kind::Float: number(name, v.to_double()); break;
      case Kind::List: list(name, v.items()); break;
      case Kind::Tuple:
        BRASA_CHECK(name.ends_with("betas") && v.items().size() == 2, source_, ": '", name, "' is a tuple of ",
                    v.items().size());
        for (size_t i = 0; i < 2; ++i) number(str(name.substr(0, name.size() - 1), i + 1), v.items()[i].to_double());
        break;
      case Kind::None:
      case Kind::String:
        if (name.ends_with(".line_search_fn")) number(name.substr(0, name.rfind('.')) + ".strong_wolfe", v.is_string());
        if (name.ends_with(".max_eval")) number(name, -1);
        break;
      default: fail(str(source_, ": '", name, "' of an optimizer is a ", v.kind_name()));
    }
  }

  void list(const std::string& name, const Value::Items& items) {
    number(name + ".size", static_cast<double>(items.size()));
    for (size_t i = 0; i < items.size(); ++i) tensor(str(name, ".", i), items[i].to_tensor());
  }

  const Value& root_;
  size_t left_;
  const std::string& source_;
  serialize::Contents out_;
};

// The other way. Brasa's archives have every number as a tensor; what LibTorch reads has types, which are these fields'.
constexpr std::array<std::string_view, 6> kIntegers{"step",     "func_evals", "n_iter",
                                                    "max_iter", "max_eval",   "history_size"};
constexpr std::array<std::string_view, 3> kBools{"amsgrad", "nesterov", "centered"};
constexpr std::array<std::string_view, 3> kNotLibTorchs{"maximize", "decoupled_weight_decay", "search_within_max_eval"};
constexpr std::array<std::string_view, 2> kFloatsOfStates{"t", "prev_loss"};
bool is_in(const auto& list, std::string_view name) { return std::find(list.begin(), list.end(), name) != list.end(); }

class Builder {
 public:
  Builder(const serialize::Contents& contents, const std::string& target) : archive_(contents), target_(target) {}

  Value build() {
    Value::Pairs states, groups;
    int64_t parameter = 0;
    for (int64_t g = 0;; ++g) {
      serialize::InputArchive options;
      if (!archive_.try_read(str("param_groups.", g), options)) {
        groups.insert(groups.begin(), {"param_groups/size", scalar_tensor(g, kInt64)});
        break;
      }
      auto count = static_cast<int64_t>(number(options, "params"));
      Value::Pairs group{{"params/size", scalar_tensor(count, kInt64)}};
      for (int64_t p = 0; p < count; ++p, ++parameter) {
        // LibTorch's keys are addresses, which are not 0.
        std::string key = std::to_string(parameter + 1);
        group.emplace_back(str("params/", p), key);
        serialize::InputArchive state;
        if (archive_.try_read(str("state.", parameter), state))
          states.emplace_back(key, object(state, /*options=*/false));
      }
      group.emplace_back("options", object(options, /*options=*/true));
      groups.emplace_back(str("param_groups/", g), Value::object("", std::move(group)));
    }
    return Value::object("", {{"pytorch_version", "1.5.0"},
                              {"state", Value::object("", std::move(states))},
                              {"param_groups", Value::object("", std::move(groups))}});
  }

 private:
  static double number(serialize::InputArchive& fields, const std::string& name) {
    Tensor t;
    fields.read(name, t);
    return t.item<double>();
  }

  Value object(serialize::InputArchive& fields, bool options) {
    Value::Pairs out;
    for (const std::string& name : fields.keys()) {
      Tensor t;
      if (name == "params" || name == "beta2") continue;
      if (is_in(kNotLibTorchs, name)) {
        BRASA_CHECK(number(fields, name) == 0, target_, ": LibTorch's optimizers have no option '", name, "'");
      } else if (name == "beta1") {
        out.emplace_back("betas", Value::tuple({number(fields, "beta1"), number(fields, "beta2")}));
      } else if (name == "strong_wolfe") {
        out.emplace_back("line_search_fn", number(fields, name) != 0 ? Value("strong_wolfe") : Value());
      } else if (!fields.try_read(name, t)) {
        out.emplace_back(name, list(fields, name));
      } else if (is_in(kBools, name)) {
        out.emplace_back(name, t.item<double>() != 0);
      } else if (is_in(kIntegers, name)) {
        auto n = static_cast<int64_t>(t.item<double>());
        out.emplace_back(name, name == "max_eval" && n < 0 ? Value() : Value(n));
      } else if (options || is_in(kFloatsOfStates, name)) {
        double x = t.item<double>();
        BRASA_CHECK(!options || x == x, target_, ": the option '", name,
                    "' is a tensor or not a number, which LibTorch's optimizers do not take");
        out.emplace_back(name, x);
      } else {
        out.emplace_back(name, t);
      }
    }
    return Value::object("", std::move(out));
  }

  static Value list(serialize::InputArchive& fields, const std::string& name) {
    serialize::InputArchive items;
    fields.read(name, items);
    Value::Items out;
    auto size = static_cast<int64_t>(number(items, "size"));
    for (int64_t i = 0; i < size; ++i) {
      Tensor t;
      items.read(std::to_string(i), t);
      out.emplace_back(t);
    }
    return Value::list_of(Kind::Tensor, std::move(out));
  }

  serialize::InputArchive archive_;
  const std::string& target_;
};

}  // namespace

bool is_optimizer(const serialize::Contents& contents) {
  return contents.texts.empty() && contents.tensors.contains("param_groups.0.params") &&
         std::all_of(contents.tensors.begin(), contents.tensors.end(), [](const auto& t) {
           return t.first.starts_with("param_groups.") || t.first.starts_with("state.");
         });
}

Value libtorch_optimizer(const serialize::Contents& contents, const std::string& target) {
  return Builder(contents, target).build();
}

bool is_libtorch_optimizer(const pickle::Value& root) {
  return root.kind() == Kind::Object && root.find("pytorch_version") && root.find("state") && root.find("param_groups");
}

serialize::Contents contents_of_optimizer(const pickle::Value& root, size_t file_bytes, const std::string& source) {
  return Converter(root, file_bytes, source).convert();
}

}  // namespace brasa::io
