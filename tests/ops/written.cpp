#include <brasa/brasa.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "eager_call.h"

// Results that are written into tensors that are given: `out=`.
namespace brasa::test {
namespace {

// Every row's first sample into tensors that are given, as many as it has results.
TEST(Written, ByEveryRow) {
  int checked = 0;
  for (const ops::Row& row : ops::table().rows()) {
    const auto& returns = row.schema.returns;
    bool tensors = !returns.empty() && std::all_of(returns.begin(), returns.end(), [](const ir::Return& r) {
      return r.type == ir::ParamType::Tensor && !r.list;
    });
    const auto& params = row.schema.params;
    bool changes = std::any_of(params.begin(), params.end(), [](const ir::Param& p) { return p.mutated; });
    bool named_so = row.schema.index_of("out") >= 0;
    if (named_so || row.is_primitive() || row.view || row.random || changes || row.memory != ops::Memory::None ||
        !tensors)
      continue;
    EagerCall eager(row, row.samples.at(0).args);
    std::vector<Tensor> results = brasa::call(row.name(), eager.args()), outs;
    for (const Tensor& r : results) outs.push_back(empty({0}, r.scalar_type()));
    std::vector<Tensor> written = brasa::call(row.name(), eager.args(), {{"out", TensorList(outs)}});
    ASSERT_EQ(written.size(), results.size()) << row.name();
    for (size_t i = 0; i < results.size(); ++i) {
      EXPECT_TRUE(written[i].is_same(outs[i])) << row.name();
      EXPECT_TRUE(allclose(outs[i], results[i], 0, 0, true)) << row.name();
    }
    ++checked;
  }
  EXPECT_GT(checked, 800);
}

}  // namespace
}  // namespace brasa::test
