#include <gtest/gtest.h>

#include <algorithm>

#include "check.h"
#include "ops/families.h"
#include "ops/interpreter.h"
#include "ops/primitives/interp.h"

// Compiled code has every point-wise primitive of the table, for every dtype that the interpreter defines it for.
namespace brasa::compiler::testing {
namespace {

std::vector<std::string> pointwise() {
  std::vector<std::string> out;
  for (const ops::Row& r : ops::table().rows())
    if (r.is_pointwise()) out.push_back(r.name().substr(6));
  return out;
}

// Where functions are smooth and defined.
void bounds(const std::string& name, DType t, In& in) {
  if (t == DType::Bool) in.high = 2;
  if (!is_floating(t)) {
    in.low = t == DType::UInt8 || t == DType::Bool ? 0 : -5;
    in.high = t == DType::Bool ? 2 : 6;
    return;
  }
  in.low = 0.1;
  in.high = 0.9;
  if (name == "acosh") in.low = 1.2, in.high = 3;
}

class Pointwise : public ::testing::TestWithParam<std::string> {};

TEST_P(Pointwise, IsCompiled) {
  const ops::Row& row = ops::at("prim::" + GetParam());
  int compiled = 0;
  for (DType t : {DType::Float32, DType::Float64, DType::BFloat16, DType::Float16, DType::Int64, DType::Int32,
                  DType::Int16, DType::Int8, DType::UInt8, DType::Bool}) {
    std::vector<In> inputs;
    for (const ir::Param& p : row.schema.params) {
      if (p.type == ir::ParamType::DType) continue;
      In in{t, {37}};
      bounds(GetParam(), t, in);
      if (p.name == "condition") in = {DType::Bool, {37}, 0, 2};
      inputs.push_back(in);
    }
    bool to_dtype = row.schema.params.back().type == ir::ParamType::DType;
    auto build = [&](const std::vector<ir::Value>& v) {
      ir::Args args(v.begin(), v.end());
      if (to_dtype) args.push_back(ir::Arg(GetParam() == "bitcast" ? t : DType::Float32));
      return ops::Builder::current().record(row, std::move(args));
    };
    // What the interpreter refuses, or a type rule, is not there.
    try {
      ir::Graph g(ir::Level::Primitives);
      ir::Facts facts;
      ops::Builder builder(g, facts);
      std::vector<ir::Value> values;
      std::vector<ops::Array> arrays;
      for (const In& in : inputs) {
        values.push_back(g.add_input({in.dtype, {37}, false}));
        arrays.push_back(ops::make_array(in.dtype, {37}));
      }
      g.add_output(build(values)[0]);
      if (is_complex(ir::type_of(g.outputs()[0].value).dtype)) continue;  // complex_test.cpp
      ops::evaluate(g, arrays);
    } catch (const std::exception&) {
      continue;
    }
    SCOPED_TRACE(std::string(name(t)));
    Options options;
    options.tolerance = t == DType::Float64 ? 1e-11 : is_floating(t) && size_of(t) == 4 ? 5e-5 : 0;
    check(inputs, build, options);
    ++compiled;
  }
  if (compiled == 0) GTEST_SKIP() << "of complex numbers alone";
}

// The code generator makes no other rows than these.
TEST(Primitives, HaveAllThatLoopsMayHold) {
  const std::vector<const ops::Row*>& primitives = ops::primitives();
  for (const ops::Row& row : ops::table().rows())
    if (row.legal_at(ir::Level::Loops)) {
      EXPECT_EQ(std::count(primitives.begin(), primitives.end(), &row), 1) << row.name();
    }
}

INSTANTIATE_TEST_SUITE_P(Table, Pointwise, ::testing::ValuesIn(pointwise()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace brasa::compiler::testing
