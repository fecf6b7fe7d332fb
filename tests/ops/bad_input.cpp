#include <brasa/error.h>
#include <gtest/gtest.h>

#include <complex>
#include <limits>

#include "eager_call.h"
#include "ops/table.h"
#include "support/str.h"

// Each row's samples, spoilt in every argument: rank, size, dtype, kind, dimension, index, absent tensors, huge numbers.
// Such a call gives its results or throws brasa::Error that names the operator; what no operator may accept has to throw.
namespace brasa::test {
namespace {

using ir::Param;
using ir::ParamType;
using ops::SampleArg;
using ops::TensorSample;

enum class Wrong : uint8_t {
  IfRuleSays,  // the row's type rule decides
  Perhaps,     // some operators take it, and what is wrong may show in the call only
  Surely,      // for every operator
};

struct Spoilt {
  std::string what;
  SampleArgs args;
  Wrong wrong;
};

class Spoiler {
 public:
  Spoiler(const ops::Row& row, const ops::Sample& sample) : row_(row), args_(sample.args) {
    for (size_t i = args_.size(); i < row.schema.params.size() && row.schema.params[i].type != ParamType::Generator;
         ++i)
      args_.emplace_back(row.schema.params[i].default_value.value_or(ir::Arg()));
    for (at_ = 0; at_ < args_.size(); ++at_) {
      if (auto* one = std::get_if<TensorSample>(&args_[at_]))
        tensor(*one, [](const TensorSample& s) { return SampleArg(s); });
      else if (auto* list = std::get_if<std::vector<TensorSample>>(&args_[at_]))
        tensors(*list);
      else
        literal(std::get<ir::Arg>(args_[at_]));
    }
  }
  std::vector<Spoilt> take() { return std::move(out_); }

 private:
  const Param& param() const { return row_.schema.params[at_]; }
  // Operators that promise not to look at their indices are named so.
  bool checked() const { return !row_.schema.base.starts_with("_unsafe"); }
  bool named(std::string_view start) const { return param().name.starts_with(start); }

  static Wrong surely_if(bool b) { return b ? Wrong::Surely : Wrong::Perhaps; }

  void add(std::string what, SampleArg arg, Wrong wrong) {
    Spoilt s{str(param().name, " ", what), args_, wrong};
    s.args[at_] = std::move(arg);
    out_.push_back(std::move(s));
  }

  // `put` makes the argument that has this tensor.
  template <class Put>
  void tensor(const TensorSample& t, Put put) {
    auto with = [&](std::string what, auto change, Wrong wrong = Wrong::IfRuleSays) {
      TensorSample s = t;
      change(s);
      add(std::move(what), put(s), wrong);
    };
    with("with more dimensions", [](TensorSample& s) { s.shape.insert(s.shape.begin(), {2, 1, 3, 2}); });
    with("without dimensions", [](TensorSample& s) { s.shape.clear(); });
    with("without elements", [](TensorSample& s) { s.shape.assign(s.shape.empty() ? 1 : s.shape.size(), 0); });
    for (size_t d = 0; d < t.shape.size(); ++d) with(str("larger at ", d), [&](TensorSample& s) { s.shape[d] += 3; });
    for (DType type : {DType::Bool, DType::Int8, DType::Int64, DType::Float64, DType::Complex64})
      if (type != t.dtype) with(str("of ", name(type)), [&](TensorSample& s) { s.dtype = type; });
    if (t.dtype == DType::Int64)
      for (double far : {1e5, -1e5})  // sections of tensor_split are made one by one
        with(
            "far out of range", [&](TensorSample& s) { s.low = far, s.high = far + 1; },
            surely_if(named("ind") && checked() && sample_array(t).numel() > 0));
    if (!param().list && !param().optional) {
      add("undefined", ir::Arg(), Wrong::Surely);
      add("a string", ir::Arg("text"), Wrong::Surely);
    }
  }

  void tensors(const std::vector<TensorSample>& list) {
    for (size_t k = 0; k < list.size(); ++k)
      tensor(list[k], [&](const TensorSample& s) {
        std::vector<TensorSample> others = list;
        others[k] = s;
        return SampleArg(others);
      });
    add("empty", std::vector<TensorSample>(), Wrong::IfRuleSays);
    add("of one", std::vector<TensorSample>{list.empty() ? ops::floats(2) : list[0]}, Wrong::IfRuleSays);
  }

  static std::vector<int64_t> huge_and(std::vector<int64_t> others) {
    for (int64_t v : {std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min(), int64_t{1} << 62})
      others.push_back(v);
    return others;
  }

  void literal(const ir::Arg& given) {
    if (param().type == ParamType::Tensor) return;
    ParamType t = param().type;
    add("a string", ir::Arg("no such choice"),
        surely_if(t == ParamType::Int || t == ParamType::Float || t == ParamType::Bool || t == ParamType::Scalar ||
                  t == ParamType::DType));
    if (param().type == ParamType::Int && param().list) {
      auto* items = given.get_if<std::vector<ir::Expr>>();
      size_t n = items ? items->size() : 2;
      for (int64_t v : huge_and({-7, 0}))
        add(str("all ", v), ir::Arg(std::vector<ir::Expr>(n, ir::Expr(v))), Wrong::Perhaps);
      add("of none", ir::Arg(std::vector<ir::Expr>()), Wrong::IfRuleSays);
      if (n != 2 || param().list_size == 0)  // for an int[2] one number stands for two
        add("of one less", ir::Arg(std::vector<ir::Expr>(n ? n - 1 : 0, ir::Expr(1))), Wrong::IfRuleSays);
      add("of one more", ir::Arg(std::vector<ir::Expr>(n + 1, ir::Expr(1))), Wrong::IfRuleSays);
      add("of five", ir::Arg(std::vector<ir::Expr>(5, ir::Expr(1))), Wrong::IfRuleSays);
      if (param().name == "dim")
        for (int64_t far : {64, -65}) add(str("far out, ", far), ops::list({far}), Wrong::Surely);
    } else if (param().type == ParamType::Int) {
      for (int64_t v : huge_and({-1, -2, 0})) add(str(v), ir::Arg(v), surely_if(named("dim") && (v > 64 || v < -64)));
    } else if (!param().list && (param().type == ParamType::Float || param().type == ParamType::Scalar)) {
      for (double v : {std::nan(""), HUGE_VAL, -1.0, 1e300}) add(str(v), ir::Arg(v), Wrong::IfRuleSays);
      if (t != ParamType::Scalar) return;
      add("true", ir::Arg(true), Wrong::Perhaps);
      add("complex", ir::Arg(std::complex<double>(1, 2)), Wrong::Perhaps);
    }
  }

  const ops::Row& row_;
  SampleArgs args_;
  size_t at_ = 0;
  std::vector<Spoilt> out_;
};

bool rule_forbids(const ops::Row& row, const SampleArgs& args) {
  ops::Sample sample = {};
  sample.args = args;
  try {
    record(sample_call(row, sample, false), false);
    return false;
  } catch (const std::exception&) {
    return true;
  }
}

class BadInput : public testing::TestWithParam<std::string> {};

TEST_P(BadInput, IsAnErrorOfTheOperator) {
  const ops::Row& row = ops::at(GetParam());
  for (const ops::Sample& sample : row.samples)
    for (const Spoilt& s : Spoiler(row, sample).take()) {
      bool forbidden = s.wrong == Wrong::Surely || (s.wrong == Wrong::IfRuleSays && rule_forbids(row, s.args));
      if (s.wrong == Wrong::IfRuleSays && !forbidden) continue;
      SCOPED_TRACE(s.what);
      try {
        brasa::call(row.name(), EagerCall(row, s.args).args());
        EXPECT_FALSE(forbidden) << "was accepted";
      } catch (const Error& e) {
        EXPECT_NE(std::string_view(e.what()).find(row.schema.base), std::string_view::npos) << e.what();
      } catch (const std::exception& e) {
        ADD_FAILURE() << "is no error of the user's: " << e.what();
      }
    }
  std::vector<brasa::CallArg> more(row.schema.params.size() + 1, brasa::CallArg(1));
  EXPECT_THROW(brasa::call(row.name(), more), Error) << "one argument more";
}

INSTANTIATE_TEST_SUITE_P(Table, BadInput, testing::ValuesIn(composed_rows()),
                         [](const auto& i) { return test_name(i.param); });

// A graph in a file may hold any node. The address sanitizer shows a rule that reads beyond a list's end.
TEST(TypeRules, TakeOrRefuseWhateverAPrimitiveIsGiven) {
  size_t refused = 0, taken = 0;
  for (const ops::Row& row : ops::table().rows()) {
    if (!row.is_primitive()) continue;
    for (const ops::Sample& sample : row.samples)
      for (const Spoilt& s : Spoiler(row, sample).take()) ++(rule_forbids(row, s.args) ? refused : taken);
  }
  EXPECT_GT(refused, 100u);
  EXPECT_GT(taken, 100u);
}

}  // namespace
}  // namespace brasa::test
