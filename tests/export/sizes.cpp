// Programs as torch.export writes them, with arithmetic on sizes that vary: exported and recorded ones compute with any sizes.
#include <brasa/export_program.h>

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include <brasa/brasa.h>

#include "export/loaded.h"
#include "import/archive.h"

namespace brasa {
namespace {

using Json = nlohmann::json;

Json number(int64_t v) { return {{"as_int", v}}; }
Json real(double v) { return {{"as_float", v}}; }
Json tensor(const std::string& name) { return {{"as_tensor", {{"name", name}}}}; }
Json integer(const std::string& name) { return {{"as_sym_int", {{"as_name", name}}}}; }
Json real(const std::string& name) { return {{"as_sym_float", {{"as_name", name}}}}; }
Json integers(const std::vector<std::string>& names) {
  Json items = Json::array();
  for (const std::string& name : names) items.push_back({{"as_name", name}});
  return {{"as_sym_ints", items}};
}

// A program of `a` [s0, s1] and `b` [s2].
class Program {
 public:
  Program() {
    ExportOptions options;
    options.targets = {};
    options.input_names = {"a", "b"};
    options.dynamic = {{0, 0, 1, 60}, {0, 1, 1, 60}, {1, 0, 1, 60}};
    export_([](const Tensor& a, const Tensor& b) { return a.sum() + b.sum(); }, {rand({3, 4}), rand({5})}, options)
        .write_pt2(path());
    archive_ = import::read_archive(path());
    program_ = Json::parse(archive_.program);
    graph()["nodes"] = Json::array();
    graph()["outputs"] = Json::array();
    program_["graph_module"]["signature"]["output_specs"] = Json::array();
    for (auto [name, of, dim] : {std::tuple("s0", "a", 0), {"s1", "a", 1}, {"s2", "b", 0}})
      node("torch.ops.aten.sym_size.int", {{"self", tensor(of)}, {"dim", number(dim)}}, integer(name));
  }

  void node(const std::string& target, const std::vector<std::pair<std::string, Json>>& arguments, Json result) {
    Json inputs = Json::array();
    for (const auto& [name, arg] : arguments) inputs.push_back({{"name", name}, {"arg", arg}, {"kind", 1}});
    graph()["nodes"].push_back({{"target", target},
                                {"inputs", inputs},
                                {"outputs", {result}},
                                {"metadata", Json::object()},
                                {"is_hop_single_tensor_return", nullptr}});
  }
  // One of Python's operators on two numbers.
  void compute(const std::string& op, Json a, Json b, Json result) {
    node("_operator." + op, {{"", std::move(a)}, {"", std::move(b)}}, std::move(result));
  }
  void result(const std::string& name) {
    graph()["outputs"].push_back(tensor(name));
    program_["graph_module"]["signature"]["output_specs"].push_back({{"user_output", {{"arg", tensor(name)}}}});
  }
  // A recorded program has an input that nothing reads with the example's sizes alone.
  void read_inputs() {
    for (auto [of, name] : {std::pair("a", "sum_of_a"), {"b", "sum_of_b"}})
      node("torch.ops.aten.sum.default", {{"self", tensor(of)}}, tensor(name));
    node("torch.ops.aten.add.Tensor", {{"self", tensor("sum_of_a")}, {"other", tensor("sum_of_b")}}, tensor("sum"));
    result("sum");
  }
  io::ExportedModule loaded() {
    import::write_archive(path(), program_.dump(), {}, {}, archive_.example_inputs);
    return io::load_pt2(path());
  }

 private:
  std::string path() const { return (folder_.path / "program.pt2").string(); }
  Json& graph() { return program_["graph_module"]["graph"]; }

  Folder folder_;
  import::Archive archive_;
  Json program_;
};

struct Case {
  std::function<void(Program&)> write;  // a tensor named "out"
  std::function<Tensor(const Tensor& a, const Tensor& b)> compute;
};

std::vector<Case> cases() {
  return {
      {[](Program& p) {
         p.compute("sub", integer("s1"), number(1), integer("rest"));
         p.node("torch.ops.aten.narrow.default",
                {{"self", tensor("a")}, {"dim", number(1)}, {"start", number(1)}, {"length", integer("rest")}},
                tensor("out"));
       },
       [](const Tensor& a, const Tensor&) { return a.narrow(1, 1, a.size(1) - 1); }},
      {[](Program& p) {
         p.node("torch.sym_min", {{"a", integer("s0")}, {"b", integer("s2")}}, integer("least"));
         for (auto [of, name] : {std::pair("a", "first"), {"b", "second"}})
           p.node("torch.ops.aten.slice.Tensor",
                  {{"self", tensor(of)}, {"dim", number(0)}, {"start", number(0)}, {"end", integer("least")}},
                  tensor(name));
         p.node("torch.ops.aten.unsqueeze.default", {{"self", tensor("second")}, {"dim", number(1)}}, tensor("column"));
         p.node("torch.ops.aten.add.Tensor", {{"self", tensor("first")}, {"other", tensor("column")}}, tensor("out"));
       },
       [](const Tensor& a, const Tensor& b) {
         int64_t n = std::min(a.size(0), b.size(0));
         return a.slice(0, 0, n) + b.slice(0, 0, n).unsqueeze(1);
       }},
      // arange(s0 + s2 - 1) * (s1 % 3 + 1)
      {[](Program& p) {
         p.compute("add", integer("s0"), integer("s2"), integer("sum"));
         p.compute("sub", integer("sum"), number(1), integer("length"));
         p.node("torch.ops.aten.arange.default", {{"end", integer("length")}}, tensor("range"));
         p.compute("mod", integer("s1"), number(3), integer("rest"));
         p.compute("add", integer("rest"), number(1), integer("times"));
         p.node("torch.ops.aten.mul.Tensor", {{"self", tensor("range")}, {"other", integer("times")}}, tensor("out"));
       },
       [](const Tensor& a, const Tensor& b) { return arange(a.size(0) + b.size(0) - 1) * (a.size(1) % 3 + 1); }},
      // a / s1 ** 0.5 * (s0 / 3)
      {[](Program& p) {
         p.compute("pow", integer("s1"), real(0.5), real("root"));
         p.compute("truediv", integer("s0"), number(3), real("third"));
         p.node("torch.ops.aten.div.Tensor", {{"self", tensor("a")}, {"other", real("root")}}, tensor("scaled"));
         p.node("torch.ops.aten.mul.Tensor", {{"self", tensor("scaled")}, {"other", real("third")}}, tensor("out"));
       },
       [](const Tensor& a, const Tensor&) {
         return a / std::sqrt(static_cast<double>(a.size(1))) * (static_cast<double>(a.size(0)) / 3);
       }},
      // full([trunc(1.3 * s0), max(s1, s2) // 2], s2 * 0.37)
      {[](Program& p) {
         p.compute("mul", real(1.3), integer("s0"), real("scaled"));
         p.node("math.trunc", {{"", real("scaled")}}, integer("rows"));
         p.node("torch.sym_max", {{"a", integer("s1")}, {"b", integer("s2")}}, integer("most"));
         p.compute("floordiv", integer("most"), number(2), integer("columns"));
         p.compute("mul", integer("s2"), real(0.37), real("value"));
         p.node("torch.ops.aten.full.default", {{"size", integers({"rows", "columns"})}, {"fill_value", real("value")}},
                tensor("out"));
       },
       [](const Tensor& a, const Tensor& b) {
         auto rows = static_cast<int64_t>(1.3 * static_cast<double>(a.size(0)));
         return full({rows, std::max(a.size(1), b.size(0)) / 2}, static_cast<double>(b.size(0)) * 0.37);
       }},
      // repeat_interleave(a, full([s0], 2), 0, output_size=2 * s0)
      {[](Program& p) {
         p.compute("mul", integer("s0"), number(2), integer("length"));
         p.node("torch.ops.aten.full.default", {{"size", integers({"s0"})}, {"fill_value", number(2)}},
                tensor("repeats"));
         p.node("torch.ops.aten.repeat_interleave.self_Tensor",
                {{"self", tensor("a")},
                 {"repeats", tensor("repeats")},
                 {"dim", number(0)},
                 {"output_size", integer("length")}},
                tensor("out"));
       },
       [](const Tensor& a, const Tensor&) { return a.repeat_interleave(2, 0); }},
  };
}

// Ones, equal sizes, neighbours in each order, and others.
const std::vector<std::array<int64_t, 3>> kSizes = {{1, 1, 1}, {2, 2, 2},  {3, 4, 5},    {5, 4, 3},   {4, 3, 4},
                                                    {1, 9, 2}, {30, 1, 7}, {17, 16, 15}, {59, 60, 58}};

TEST(ExportedSizes, ArithmeticOfSizesHoldsForAllOfThem) {
  for (size_t k = 0; k < cases().size(); ++k) {
    SCOPED_TRACE(k);
    Case c = cases()[k];
    Program program;
    c.write(program);
    program.result("out");
    program.read_inputs();
    io::ExportedModule net = program.loaded();
    Folder folder;
    ExportOptions options;
    options.targets = {};
    std::string recorded = (folder.path / "recorded.pt2").string();
    export_(net, options).write_pt2(recorded);
    io::ExportedModule again = io::load_pt2(recorded);
    options.targets = {"x86-64"};
    options.name = "alone";
    Loaded alone(export_(net, options), folder.path);
    for (auto [s0, s1, s2] : kSizes) {
      Tensor a = rand({s0, s1}), b = rand({s2}), want = c.compute(a, b);
      SCOPED_TRACE(testing::Message() << s0 << ", " << s1 << ", " << s2);
      EXPECT_TRUE(allclose(net(std::vector<Tensor>{a, b})[0], want));
      EXPECT_TRUE(allclose(again(std::vector<Tensor>{a, b})[0], want));
      std::vector<Tensor> got = {empty_like(want), empty({})};
      ASSERT_EQ(alone.run({a, b}, got), 0) << alone.context.message;
      EXPECT_TRUE(allclose(got[0], want));
    }
  }
}

// The place of the greatest element of b is no more than 5 by an assertion, and no more than b has.
TEST(ExportedSizes, NumbersThatAreValues) {
  Program program;
  program.node("torch.ops.aten.argmax.default", {{"self", tensor("b")}}, tensor("place"));
  program.node("torch.ops.aten.item.default", {{"self", tensor("place")}}, integer("k"));
  program.compute("le", integer("k"), number(5), {{"as_sym_bool", {{"as_name", "holds"}}}});
  program.node("torch.ops.aten._assert_scalar.default",
               {{"self", {{"as_sym_bool", {{"as_name", "holds"}}}}}, {"assert_msg", {{"as_string", "k is at most 5"}}}},
               {{"as_none", true}});
  program.node("torch.ops.aten.slice.Tensor",
               {{"self", tensor("b")}, {"dim", number(0)}, {"start", integer("k")}, {"end", number(INT64_MAX)}},
               tensor("rest"));
  program.compute("add", integer("k"), number(2), integer("more"));
  program.node("torch.ops.aten.full.default", {{"size", integers({"more"})}, {"fill_value", number(1)}},
               tensor("ones"));
  program.result("rest");
  program.result("ones");
  program.read_inputs();
  io::ExportedModule net = program.loaded();
  Folder folder;
  ExportOptions options;
  options.targets = {"x86-64"};
  options.name = "alone";
  ExportedProgram exported = export_(net, options);
  Loaded alone(exported, folder.path);
  for (int64_t n : {1, 2, 5, 9})
    for (int64_t k = 0; k < std::min<int64_t>(n, 6); ++k) {
      SCOPED_TRACE(testing::Message() << n << ", " << k);
      Tensor a = rand({3, 4}), b = zeros({n});
      b[k].fill_(1);
      std::vector<Tensor> got = alone.give({a, b}), want = net(std::vector<Tensor>{a, b});
      EXPECT_TRUE(got[0].equal(want[0]));
      EXPECT_TRUE(got[1].equal(want[1]));
    }
  try {
    alone.give({rand({3, 4}), arange(8).to(kFloat32)});
    ADD_FAILURE() << "an assertion does not hold";
  } catch (const std::runtime_error& e) {
    EXPECT_NE(std::string_view(e.what()).find("is 7, expected 0 to 5"), std::string_view::npos) << e.what();
    EXPECT_NE(std::string_view(e.what()).find("torch.ops.aten.item"), std::string_view::npos) << e.what();
  }
}

}  // namespace
}  // namespace brasa
