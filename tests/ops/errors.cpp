#include <gtest/gtest.h>

#include <brasa/error.h>

#include "ops/algebra.h"

// Small wrong programs, and the message that each must get.
namespace brasa::test {
namespace {

struct Wrong {
  const char* op;
  std::function<ir::Args(ir::Graph&)> args;
  const char* message;
};

ir::Arg input(ir::Graph& g, DType t, std::vector<int64_t> shape) {
  ir::Shape sizes(shape.begin(), shape.end());
  return g.add_input({t, sizes, false});
}
constexpr DType kF32 = DType::Float32, kI64 = DType::Int64, kBool = DType::Bool;

const Wrong kWrong[] = {
    {"aten::add.Tensor", [](ir::Graph& g) { return ir::Args{input(g, kF32, {3, 4}), input(g, kF32, {3, 5})}; },
     "The size of tensor a (4) must match the size of tensor b (5) at non-singleton dimension 1"},
    {"aten::add.Tensor", [](ir::Graph& g) { return ir::Args{input(g, kI64, {3}), input(g, kI64, {3}), 0.5}; },
     "For integral input tensors, argument alpha must not be a floating point number"},
    {"aten::sub.Tensor", [](ir::Graph& g) { return ir::Args{input(g, kBool, {3}), input(g, kBool, {3})}; },
     "Subtraction, the `-` operator, with two bool tensors is not supported"},
    {"aten::neg", [](ir::Graph& g) { return ir::Args{input(g, kBool, {3})}; },
     "Negation, the `-` operator, on a bool tensor"},
    {"aten::div.Tensor_mode", [](ir::Graph& g) { return ir::Args{input(g, kF32, {3}), input(g, kF32, {3}), "up"}; },
     "found 'up'"},
    {"aten::pow.Tensor_Scalar", [](ir::Graph& g) { return ir::Args{input(g, kI64, {3}), -2}; },
     "Integers to negative integer powers are not allowed"},
    {"aten::remainder.Scalar", [](ir::Graph& g) { return ir::Args{input(g, kI64, {3}), 0}; }, "ZeroDivisionError"},
    {"aten::sum.dim_IntList", [](ir::Graph& g) { return ir::Args{input(g, kF32, {3, 4}), ops::int_arg({2})}; },
     "Dimension out of range (expected to be in range of [-2, 1], but got 2)"},
    {"aten::sum.dim_IntList", [](ir::Graph& g) { return ir::Args{input(g, kF32, {3, 4}), ops::int_arg({1, -1})}; },
     "dim 1 appears multiple times"},
    {"aten::mean", [](ir::Graph& g) { return ir::Args{input(g, kI64, {3})}; }, "Got: int64"},
    {"aten::amax", [](ir::Graph& g) { return ir::Args{input(g, kF32, {0, 3}), ops::int_arg({0})}; }, "non-zero size"},
    {"aten::softmax.int", [](ir::Graph& g) { return ir::Args{input(g, kI64, {3}), 0}; }, "not implemented for int64"},
    {"aten::gelu", [](ir::Graph& g) { return ir::Args{input(g, kF32, {3}), "cubic"}; }, "got 'cubic'"},
    {"aten::glu", [](ir::Graph& g) { return ir::Args{input(g, kF32, {3}), 0}; },
     "Halving dimension must be even, but dimension 0 is size 3"},
    {"aten::dropout", [](ir::Graph& g) { return ir::Args{input(g, kF32, {3}), 1.5, true, input(g, kI64, {2})}; },
     "between 0 and 1, but got 1.5"},
    {"aten::nll_loss", [](ir::Graph& g) { return ir::Args{input(g, kF32, {3, 5}), input(g, kI64, {4})}; },
     "Expected input batch_size (3) to match target batch_size (4)."},
    {"aten::cross_entropy_loss", [](ir::Graph& g) { return ir::Args{input(g, kF32, {3, 5}), input(g, kF32, {3})}; },
     "class targets are int64 or uint8"},
    {"aten::zeros", [](ir::Graph&) { return ir::Args{ops::int_arg({2, -1})}; }, "negative dimension -1: [2, -1]"},
    {"aten::arange.start_step", [](ir::Graph&) { return ir::Args{0, 5, -1}; }, "inconsistent with step sign"},
    {"aten::bitwise_and.Tensor", [](ir::Graph& g) { return ir::Args{input(g, kF32, {3}), input(g, kF32, {3})}; },
     "expected integers or bool"},
    {"aten::prelu", [](ir::Graph& g) { return ir::Args{input(g, kF32, {2, 3}), input(g, kF32, {4})}; },
     "Mismatch of parameter numbers"},
};

class Errors : public testing::TestWithParam<Wrong> {};

TEST_P(Errors, SayWhatIsWrong) {
  ir::Graph graph;
  ir::Facts facts;
  ops::Builder builder(graph, facts);
  ir::Args args = GetParam().args(graph);
  try {
    builder.call(ops::at(GetParam().op), args);
    FAIL() << GetParam().op << " accepted it";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find(GetParam().message), std::string::npos) << e.what();
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, Errors, testing::ValuesIn(kWrong));

}  // namespace
}  // namespace brasa::test
