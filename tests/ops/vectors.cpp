#include "vectors.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "compare.h"
#include "ops/primitives/interp.h"
#include "samples.h"
#include "support/error.h"

// Values and gradients of PyTorch on the interpreter, with literal and with symbolic sizes. tests/verify has the other backends.
namespace brasa::test {
namespace {

using ir::Arg;
using ir::Expr;
using ir::ParamType;
using ops::Array;
using verify::Value;

const std::string kFolder = BRASA_TEST_DATA "/ops";

const std::map<std::string, verify::Card>& cards() {
  static const auto all = verify::read_cards(kFolder);
  return all;
}

std::vector<std::string> overloads() {
  std::vector<std::string> out;
  for (auto& [name, card] : cards()) out.push_back(name);
  return out;
}

Array to_ops(const verify::Array& a) { return {a.dtype, a.shape, a.bytes}; }
verify::Array to_verify(const Array& a) { return {a.dtype, a.shape, a.data, {}}; }

// Literals as the parameter's type asks for them.
class Literals {
 public:
  explicit Literals(const ir::Param& p) : p_(p) {}
  Arg of(const Value& v) const {
    return std::visit([this](const auto& x) { return make(x); }, v.v);
  }

 private:
  Arg make(std::monostate) const { return {}; }
  Arg make(bool v) const { return v; }
  Arg make(int64_t v) const {
    if (p_.list) return std::vector<Expr>(static_cast<size_t>(std::max(p_.list_size, 1)), Expr(v));
    return p_.type == ParamType::Float ? Arg(static_cast<double>(v)) : Arg(v);
  }
  Arg make(double v) const { return v; }
  Arg make(std::complex<double> v) const { return v; }
  Arg make(const std::string& v) const { return v; }
  Arg make(DType v) const { return v; }
  Arg make(const verify::MemoryFormatName& v) const { return v.name; }
  Arg make(const verify::DeviceName& v) const { return v.name; }
  Arg make(const verify::LayoutName& v) const { return v.name; }
  Arg make(verify::TensorAt) const { fail(str("a tensor for the number '", p_.name, "'")); }
  Arg make(const std::vector<Value>& list) const {
    if (p_.type == ParamType::Bool) {
      std::vector<bool> out;
      for (const Value& v : list) out.push_back(std::get<bool>(v.v));
      return out;
    }
    if (p_.type == ParamType::Int) {
      std::vector<Expr> out;
      for (const Value& v : list) out.emplace_back(std::get<int64_t>(v.v));
      return out;
    }
    std::vector<double> out;
    for (const Value& v : list) {
      auto* whole = std::get_if<int64_t>(&v.v);
      out.push_back(whole ? static_cast<double>(*whole) : std::get<double>(v.v));
    }
    return out;
  }
  const ir::Param& p_;
};

Call call_of(const verify::Entry& entry, const ops::Row& row) {
  Call call;
  call.row = &row;
  for (const verify::Array& t : entry.tensors) call.tensors.push_back({to_ops(t)});
  call.needs_gradient = entry.needs_gradient;
  for (auto& c : entry.cotangents) call.cotangents.push_back(c ? std::optional(to_ops(*c)) : std::nullopt);

  // A number where the schema says Tensor takes part in type promotion like a number.
  auto weak = [&](const Value& v) {
    Array a;
    if (auto* real = std::get_if<double>(&v.v)) {
      ops::set(a = ops::make_array(DType::Float64, {}), 0, *real);
    } else if (auto* truth = std::get_if<bool>(&v.v)) {
      ops::set_int(a = ops::make_array(DType::Bool, {}), 0, *truth);
    } else {
      ops::set_int(a = ops::make_array(DType::Int64, {}), 0, std::get<int64_t>(v.v));
    }
    call.tensors.push_back({std::move(a), true});
    call.needs_gradient.push_back(false);
    return static_cast<int>(call.tensors.size()) - 1;
  };
  auto tensor = [&](const Value& v) {
    if (std::holds_alternative<std::monostate>(v.v)) return -1;
    if (auto* t = std::get_if<verify::TensorAt>(&v.v)) return static_cast<int>(t->at);
    return weak(v);
  };
  const auto& params = row.schema.params;
  BRASA_CHECK(entry.args.size() <= params.size(), "more arguments than ", row.name(), " has parameters");
  for (size_t k = 0; k < params.size(); ++k) {
    const ir::Param& p = params[k];
    const Value* given = k < entry.args.size() ? &entry.args[k] : nullptr;
    for (auto& [name, value] : entry.kwargs)
      if (name == p.name) given = &value;
    bool is_tensor = p.type == ParamType::Tensor;
    if (!given) {
      BRASA_CHECK(p.default_value || p.optional || p.type == ParamType::Generator, "no value for '", p.name, "'");
      if (is_tensor)
        call.args.emplace_back(p.list ? CallArg(std::vector<int>{}) : CallArg(-1));
      else
        call.args.emplace_back(p.default_value.value_or(Arg()));
    } else if (!is_tensor) {
      call.args.emplace_back(Literals(p).of(*given));
    } else if (!p.list) {
      call.args.emplace_back(tensor(*given));
    } else {
      std::vector<int> items;
      if (auto* list = std::get_if<std::vector<Value>>(&given->v))
        for (const Value& v : *list) items.push_back(tensor(v));
      call.args.emplace_back(std::move(items));
    }
  }
  return call;
}

verify::Outcome run(const Call& call, const verify::Entry& entry, bool symbolic) {
  Outcome got = run_interpreter(call, symbolic);
  verify::Outcome out;
  for (const Array& a : got.outputs) out.outputs.emplace_back(to_verify(a));
  const auto& params = call.row->schema.params;
  if (std::any_of(params.begin(), params.end(), [](const ir::Param& p) { return p.mutated; }))
    out.outputs.resize(call.row->schema.returns.size());
  for (size_t i = 0; i < got.gradients.size() && i < entry.tensors.size(); ++i)
    out.gradients.push_back(got.gradients[i] ? std::optional(to_verify(*got.gradients[i])) : std::nullopt);
  return out;
}

class Vectors : public testing::TestWithParam<std::string> {};

TEST_P(Vectors, Interpreter) {
  const ops::Row* row = ops::find(verify::operator_name(GetParam()));
  ASSERT_TRUE(row) << "there is no row for these vectors";
  verify::VectorFile file(kFolder + "/" + GetParam());
  for (size_t i = 0; i < file.size(); ++i)
    for (bool symbolic : {false, true}) {
      verify::Entry entry = file.entry(i);
      auto wrong = verify::check(entry, run(call_of(entry, *row), entry, symbolic), cards().at(GetParam()));
      EXPECT_FALSE(wrong) << "entry " << i << (symbolic ? ", symbolic sizes: " : ": ") << wrong.value_or("");
    }
}

INSTANTIATE_TEST_SUITE_P(Reference, Vectors, testing::ValuesIn(overloads()),
                         [](const auto& i) { return test_name(i.param); });

// The comparison itself can fail.
TEST(VectorCheck, FindsWrongValues) {
  verify::VectorFile file(kFolder + "/aten.exp.default");
  verify::Entry entry = file.entry(0);
  const verify::Card& card = cards().at("aten.exp.default");
  EXPECT_FALSE(verify::check(entry, run(call_of(entry, ops::at("aten::exp")), entry, false), card));
  EXPECT_TRUE(verify::check(entry, run(call_of(entry, ops::at("aten::expm1")), entry, false), card));
}

}  // namespace
}  // namespace brasa::test
