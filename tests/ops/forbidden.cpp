#include <gtest/gtest.h>

#include <algorithm>

#include <brasa/error.h>

#include "ir/legality.h"
#include "ops/decompose.h"
#include "ops/interpreter.h"
#include "ops/primitives/interp.h"
#include "samples.h"
#include "support/str.h"

// Every row's first sample with one thing changed: another rank, size, dtype, index, number or string. It is accepted, with a
// legal graph that runs, or rejected with brasa::Error; nothing else, and no read out of bounds (under the sanitizers).
namespace brasa::test {
namespace {

using ops::Array;
using ops::Row;

struct Mutation {
  std::string what;
  Call call;
  bool must_fail = false;
};

// Ones, in a new shape or dtype.
Array ones(DType t, std::vector<int64_t> shape) {
  Array a = ops::make_array(t, std::move(shape));
  for (int64_t i = 0; i < a.numel(); ++i) ops::by_int(t) ? ops::set_int(a, i, 1) : ops::set(a, i, 1);
  return a;
}
Array filled(const Array& like, int64_t v) {
  Array a = like;
  for (int64_t i = 0; i < a.numel(); ++i) ops::set_int(a, i, v);
  return a;
}

class Mutations {
 public:
  explicit Mutations(const Call& call) : call_(call) {
    for (size_t i = 0; i < call.tensors.size(); ++i) tensor(i);
    for (size_t i = 0; i < call.args.size() && i < call.row->schema.params.size(); ++i) argument(i);
  }
  std::vector<Mutation> all;

 private:
  void replace(size_t i, const std::string& what, Array a) {
    Mutation m{str("tensor ", i, ": ", what), call_, false};
    m.call.tensors[i].array = std::move(a);
    all.push_back(std::move(m));
  }
  void tensor(size_t i) {
    const Array& a = call_.tensors[i].array;
    for (size_t d = 0; d < a.shape.size(); ++d)
      for (int64_t n : {int64_t{0}, a.shape[d] + 1}) {
        std::vector<int64_t> shape = a.shape;
        shape[d] = n;
        replace(i, str("size ", n, " of dimension ", d), ones(a.dtype, shape));
      }
    std::vector<int64_t> more = a.shape;
    more.push_back(2);
    replace(i, "a dimension more", ones(a.dtype, more));
    if (!a.shape.empty()) {
      replace(i, "a dimension less", ones(a.dtype, {a.shape.begin() + 1, a.shape.end()}));
      replace(i, "no dimensions", ones(a.dtype, {}));
    }
    for (DType t : {DType::Bool, DType::UInt8, DType::Int64, DType::BFloat16, DType::Float64, DType::Complex64})
      if (t != a.dtype) replace(i, std::string(name(t)), ones(t, a.shape));
    if (is_integral(a.dtype))
      for (int64_t v : {-100, -1, 100}) replace(i, str("full of ", v), filled(a, v));
  }

  void replace_argument(size_t i, const std::string& what, ir::Arg v, bool must_fail = false) {
    Mutation m{str(call_.row->schema.params[i].name, " = ", what), call_, must_fail};
    m.call.args[i] = std::move(v);
    all.push_back(std::move(m));
  }
  void argument(size_t i) {
    auto* literal = std::get_if<ir::Arg>(&call_.args[i]);
    if (!literal) return;
    const ir::Param& p = call_.row->schema.params[i];
    bool is_dim = p.name == "dim" && p.type == ir::ParamType::Int;
    if (p.type == ir::ParamType::Int && !p.list && !literal->is_none())
      for (int64_t v : {-100, -1, 0, 100}) replace_argument(i, str(v), v, is_dim && std::abs(v) == 100);
    if (p.type == ir::ParamType::Float && !p.list && !literal->is_none())
      for (double v : {-1.5, 0.0, 1e30, std::nan("")}) replace_argument(i, str(v), v);
    if (literal->is<std::string>()) replace_argument(i, "another string", "no such thing");
    if (auto* ints = literal->get_if<std::vector<ir::Expr>>(); ints && p.type == ir::ParamType::Int) {
      for (int64_t v : {-100, -1, 0, 100}) {
        std::vector<ir::Expr> items = *ints;
        if (items.empty()) items.emplace_back(v);
        items[0] = ir::Expr(v);
        replace_argument(i, str(v, ", …"), items, is_dim && std::abs(v) == 100);
      }
      replace_argument(i, "[]", std::vector<ir::Expr>{});
      std::vector<ir::Expr> longer = *ints;
      longer.emplace_back(1);
      replace_argument(i, "one more", longer);
    }
  }
  const Call& call_;
};

constexpr int64_t kMost = 100000;  // elements of a value that is still computed

bool is_small(const ir::Graph& graph) {
  for (const ir::Node* n : graph.nodes())
    for (const ir::Type& t : n->types) {
      int64_t numel = 1;
      for (ir::Expr e : t.shape)
        if (e.constant() > kMost || (numel *= e.constant()) > kMost) return false;
    }
  return true;
}

class Forbidden : public testing::TestWithParam<std::string> {};

TEST_P(Forbidden, IsRejectedOrRuns) {
  const Row& row = ops::at(GetParam());
  Call call = first_call(row);
  for (Mutation& m : Mutations(call).all) {
    bool rejected = false;
    try {
      Recorded r = record(counted(m.call), false);
      ir::check_legal(*r.graph);
      auto primitives = ops::decompose(*r.graph, r.facts);
      ir::check_legal(*primitives);
      if (is_small(*primitives)) ops::evaluate(*primitives, r.arrays);
    } catch (const Error&) {
      rejected = true;
    } catch (const std::exception& e) {
      ADD_FAILURE() << m.what << ": " << e.what();
    }
    EXPECT_TRUE(rejected || !m.must_fail) << m.what << " was accepted";
  }
}

INSTANTIATE_TEST_SUITE_P(Table, Forbidden, testing::ValuesIn(composed_rows()),
                         [](const auto& i) { return test_name(i.param); });

}  // namespace
}  // namespace brasa::test
