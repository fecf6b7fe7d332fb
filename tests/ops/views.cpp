#include <gtest/gtest.h>

#include <algorithm>

#include "ops/builder.h"
#include "ops/decompose.h"
#include "ops/interpreter.h"
#include "ops/primitives/interp.h"
#include "samples.h"

// A view row's composition is followed twice: by the interpreter on values, and by the primitives' view rules on strides.
namespace brasa::test {
namespace {

using ops::Array;
using ops::Strided;

std::vector<std::string> view_names() {
  std::vector<std::string> out;
  for (const ops::Row& r : ops::table().rows())
    if (r.view) out.push_back(r.name());
  return out;
}

class Views : public testing::TestWithParam<std::string> {};

// The elements of a view of a contiguous tensor, which may be of another dtype.
Array elements(Array base, const Strided& v, DType dtype) {
  Array out = ops::make_array(dtype, v.sizes);
  base.shape = {static_cast<int64_t>(base.data.size()) / size_of(dtype)};
  base.dtype = dtype;
  std::vector<int64_t> at(v.sizes.size());
  int64_t i = 0;
  if (out.numel() > 0) do {
      int64_t s = v.offset;
      for (size_t d = 0; d < at.size(); ++d) s += at[d] * v.strides[d];
      ops::copy_element(out, i++, base, s);
    } while (ops::next_index(at, v.sizes));
  return out;
}

TEST_P(Views, AreChainsOnStrides) {
  const ops::Row& row = ops::at(GetParam());
  for (const ops::Sample& sample : row.samples) {
    Call call = sample_call(row, sample, false);
    ir::Graph graph;
    std::vector<ir::Value> inputs;
    std::vector<Array> arrays;
    for (const CallTensor& t : call.tensors) {
      ir::Shape shape(t.array.shape.begin(), t.array.shape.end());
      inputs.push_back(graph.add_input({t.array.dtype, shape, false}));
      arrays.push_back(t.array);
    }
    ir::Args args;
    for (const CallArg& a : call.args) {
      if (auto* literal = std::get_if<ir::Arg>(&a))
        args.push_back(*literal);
      else
        args.push_back(inputs.at(std::get<int>(a)));
    }
    ir::Facts facts;
    {
      ops::Builder builder(graph, facts);
      for (ir::Value v : builder.record(*call.row, args)) graph.add_output(v);
    }
    std::vector<Array> expected = ops::evaluate(graph, arrays);
    // A row that is no composition of movements says itself where its result lies.
    auto chain = ops::decompose(graph, facts, [](const ops::Row& r) { return static_cast<bool>(r.view_rule); });
    for (size_t r = 0; r < chain->outputs().size(); ++r) {
      std::vector<const ir::Node*> nodes;
      ir::Value v = chain->outputs()[r].value;
      for (; !ir::is_input(v); v = v.node->inputs().at(0)) nodes.push_back(v.node);
      EXPECT_EQ(chain->input_index(v), 0) << "a view of another operand";
      Strided at{arrays[0].shape, ops::row_major(arrays[0].shape), 0};
      // A conjugate is a value of its own.
      auto copies = [](const ir::Node* n) { return !ops::row_of(*n).view_rule; };
      if (is_complex(arrays[0].dtype) && std::any_of(nodes.begin(), nodes.end(), copies)) continue;
      for (size_t i = nodes.size(); i-- > 0;) {
        ASSERT_TRUE(ops::row_of(*nodes[i]).view_rule) << nodes[i]->op->name();
        auto next = ops::row_of(*nodes[i]).view_rule(nodes[i]->args, at);
        ASSERT_TRUE(next) << nodes[i]->op->name() << " copies";
        at = *next;
      }
      Array got = elements(arrays[0], at, expected[r].dtype);
      EXPECT_EQ(got.shape, expected[r].shape);
      EXPECT_EQ(got.data, expected[r].data);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Views, testing::ValuesIn(view_names()),
                         [](const auto& info) { return test_name(info.param); });

}  // namespace
}  // namespace brasa::test
