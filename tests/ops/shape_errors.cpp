#include <gtest/gtest.h>

#include <brasa/error.h>

#include "ops/algebra.h"

// Wrong shapes, indices and dtypes given to movement, contraction, windows, norms and attention.
namespace brasa::test {
namespace {

using ir::Arg;
using ir::Args;
using ops::int_arg;

struct Tensors {
  ir::Graph& graph;
  Arg operator()(std::vector<int64_t> shape, DType t = DType::Float32) const {
    return graph.add_input({t, ir::Shape(shape.begin(), shape.end()), false});
  }
  Arg list(std::vector<std::vector<int64_t>> shapes) const {
    std::vector<ir::Value> out;
    for (auto& s : shapes) out.push_back((*this)(s).get<ir::Value>());
    return out;
  }
};

struct WrongShape {
  const char* op;
  Args (*args)(Tensors t);
  const char* message;
};

const WrongShape kWrong[] = {
    {"aten::view", [](Tensors t) { return Args{t({2, 3}), int_arg({4, 2})}; },
     "shape '[4, 2]' is invalid for input of size 6"},
    {"aten::view", [](Tensors t) { return Args{t({2, 3}), int_arg({-1, -1})}; }, "only one dimension can be inferred"},
    {"aten::view", [](Tensors t) { return Args{t({2, 3}), int_arg({-1, 4})}; },
     "shape '[-1, 4]' is invalid for input of size 6"},
    {"aten::reshape", [](Tensors t) { return Args{t({0, 3}), int_arg({-1, 0})}; }, "can be any value"},
    {"aten::expand", [](Tensors t) { return Args{t({2, 3}), int_arg({4, 3})}; },
     "must match the existing size (2) at non-singleton dimension 0"},
    {"aten::permute", [](Tensors t) { return Args{t({2, 3}), int_arg({0, 0})}; }, "appears multiple times"},
    {"aten::select.int", [](Tensors t) { return Args{t({2, 3}), 0, 2}; },
     "index 2 out of range for tensor of size [2, 3] at dimension 0"},
    {"aten::narrow", [](Tensors t) { return Args{t({2, 3}), 1, 2, 2}; }, "exceeds dimension size (3)"},
    {"aten::split_with_sizes", [](Tensors t) { return Args{t({5}), int_arg({2, 2})}; }, "to sum exactly to 5"},
    {"aten::diagonal", [](Tensors t) { return Args{t({2, 3}), 0, 1, 1}; }, "diagonal dimensions cannot be identical"},
    {"aten::unfold", [](Tensors t) { return Args{t({3}), 0, 4, 1}; },
     "maximum size for tensor at dimension 0 is 3 but size is 4"},
    {"aten::as_strided", [](Tensors t) { return Args{t({3}), int_arg({2, 2}), int_arg({2, 1})}; },
     "need 4 elements, but the tensor has 3"},
    {"aten::cat", [](Tensors t) { return Args{t.list({{2, 3}, {2, 4}}), 0}; },
     "Expected size 3 but got size 4 for tensor number 1 in the list."},
    {"aten::stack", [](Tensors t) { return Args{t.list({{2, 3}, {2, 4}})}; },
     "got [2, 3] at entry 0 and [2, 4] at entry 1"},
    {"aten::constant_pad_nd", [](Tensors t) { return Args{t({2}), int_arg({-2, -1})}; },
     "resulted in a negative output size"},
    {"aten::reflection_pad1d", [](Tensors t) { return Args{t({1, 3}), int_arg({3, 0})}; },
     "Padding size should be less than"},
    {"aten::mm", [](Tensors t) { return Args{t({2, 3}), t({4, 2})}; },
     "mat1 and mat2 shapes cannot be multiplied (2x3 and 4x2)"},
    {"aten::mm", [](Tensors t) { return Args{t({2, 3}), t({3, 2}, DType::Float64)}; },
     "same dtype, but got float32 and float64"},
    {"aten::bmm", [](Tensors t) { return Args{t({2, 3, 4}), t({3, 4, 5})}; },
     "Expected size for first two dimensions of batch2 tensor to be: [2, 4] but got: [3, 4]."},
    {"aten::linear", [](Tensors t) { return Args{t({2, 3}), t({4, 5})}; }, "cannot be multiplied"},
    {"aten::matmul", [](Tensors t) { return Args{t({}), t({3})}; }, "at least 1D, but they are 0D and 1D"},
    {"aten::einsum", [](Tensors t) { return Args{"ij,jk->iz", t.list({{2, 3}, {3, 4}})}; },
     "output subscript z does not appear"},
    {"aten::einsum", [](Tensors t) { return Args{"ij,jk", t.list({{2, 3}, {4, 5}})}; },
     "operands do not broadcast: subscript j has size 3 and size 4"},
    {"aten::conv2d", [](Tensors t) { return Args{t({1, 3, 8, 8}), t({4, 2, 3, 3})}; },
     "to have 2 channels, but got 3 channels instead"},
    {"aten::conv2d", [](Tensors t) { return Args{t({1, 3, 2, 2}), t({4, 3, 3, 3})}; },
     "Kernel size can't be greater than actual input size"},
    {"aten::conv2d.padding",
     [](Tensors t) { return Args{t({1, 3, 8, 8}), t({4, 3, 3, 3}), Arg(), int_arg({1, 1}), "full"}; },
     "Invalid padding string: 'full'"},
    {"aten::max_pool2d", [](Tensors t) { return Args{t({1, 2, 4, 4}), int_arg({2}), int_arg({2}), int_arg({2})}; },
     "pad should be at most half of kernel size"},
    {"aten::layer_norm", [](Tensors t) { return Args{t({2, 3}), int_arg({4})}; }, "Given normalized_shape=[4]"},
    {"aten::batch_norm", [](Tensors t) { return Args{t({2, 3}), t({4}), Arg(), Arg(), Arg(), true, 0.1, 1e-5, true}; },
     "expected weight to be of shape [3]"},
    {"aten::group_norm", [](Tensors t) { return Args{t({2, 3, 4}), 2}; }, "divisible by num_groups"},
    {"aten::scaled_dot_product_attention", [](Tensors t) { return Args{t({2, 3, 4}), t({2, 5, 6}), t({2, 5, 6})}; },
     "must agree in their last size"},
    {"aten::index_select", [](Tensors t) { return Args{t({2, 3}), 0, t({2})}; },
     "Expected dtype int32 or int64 for index"},
    {"aten::index.Tensor",
     [](Tensors t) { return Args{t({3}), std::vector<ir::Value>{t({3}, DType::Bool).get<ir::Value>()}}; },
     "size depends on the data"},
    {"aten::gather", [](Tensors t) { return Args{t({2, 3}), 0, t({2, 4}, DType::Int64)}; },
     "to be no larger than self [2, 3] apart from dimension 0"},
    {"aten::index_put",
     [](Tensors t) {
       ir::Value rows = t({2}, DType::Bool).get<ir::Value>(), columns = t({3}, DType::Bool).get<ir::Value>();
       return Args{t({2, 3}), std::vector<ir::Value>{rows, columns}, t({4})};
     },
     "only one mask"},
    {"aten::topk", [](Tensors t) { return Args{t({3}), 4}; }, "k is 4"},
};

class ShapeErrors : public testing::TestWithParam<WrongShape> {};

TEST_P(ShapeErrors, SayWhatIsWrong) {
  ir::Graph graph;
  ir::Facts facts;
  ops::Builder builder(graph, facts);
  Args args = GetParam().args({graph});
  try {
    builder.call(ops::at(GetParam().op), args);
    FAIL() << GetParam().op << " accepted it";
  } catch (const InternalError& e) {
    FAIL() << GetParam().op << ": " << e.what();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find(GetParam().message), std::string::npos) << e.what();
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, ShapeErrors, testing::ValuesIn(kWrong));

}  // namespace
}  // namespace brasa::test
