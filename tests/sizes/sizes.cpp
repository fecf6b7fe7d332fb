#include <gtest/gtest.h>

#include <brasa/call.h>
#include <brasa/compile.h>

#include "call.h"
#include "resized.h"
#include "samples.h"
#include "support/str.h"

// Every row's samples, eager and compiled, at their own sizes and at others, in memory as it comes: what they give is the
// interpreter's answer, an error where that is one.
namespace brasa::test {
namespace {

struct Counts {
  int cases = 0, refused = 0;
};

class Sizes : public testing::TestWithParam<std::string> {
 protected:
  const ops::Row& row() const { return ops::at(GetParam()); }

  void check(const ops::Sample& sample, const std::string& what, Manner manner, const Runner& runner) {
    SizedCall call(row(), sample, manner);
    auto wrong = call.check(runner);
    EXPECT_FALSE(wrong) << "sample " << at_ << " " << what << ", " << name(manner.layout) << ": " << *wrong;
    ++counts_.cases;
    counts_.refused += call.refused();
  }
  void check_all_sizes(const ops::Sample& sample, Manner manner, const Runner& runner) {
    at_ = &sample - row().samples.data();
    check(sample, "as it is", manner, runner);
    for (const Resized& r : at_other_sizes(row(), sample))
      if (manner.layout == Layout::RowMajor || r.all) check(r.sample, r.what, manner, runner);
  }
  void TearDown() override {
    RecordProperty("cases", counts_.cases);
    RecordProperty("refused", counts_.refused);
  }

  Counts counts_;
  int64_t at_ = 0;
};

const Layout kLayouts[] = {Layout::RowMajor, Layout::Step, Layout::Transposed, Layout::Expanded};

class Eager : public Sizes {};

TEST_P(Eager, IsTheInterpretersAnswer) {
  Runner runner = [&](const auto& args) { return brasa::call(row().name(), args); };
  for (const ops::Sample& sample : row().samples)
    for (Layout layout : kLayouts)
      if (layout == Layout::RowMajor || takes_layouts(row())) check_all_sizes(sample, {layout, Gradients::OfLeaves}, runner);
}

class CompiledRow : public Sizes {};

TEST_P(CompiledRow, IsTheInterpretersAnswer) {
  for (const ops::Sample& sample : row().samples)
    for (Layout layout : kLayouts) {
      if (layout != Layout::RowMajor && !takes_layouts(row())) continue;
      auto body = [&](const std::vector<brasa::CallArg>& args) { return brasa::call(row().name(), args); };
      auto compiled = compile(body, {.dynamic = true});
      Gradients gradients = layout == Layout::RowMajor ? Gradients::OfClones : Gradients::None;
      check_all_sizes(sample, {layout, gradients}, [&](const auto& args) { return compiled(args); });
      Explanation e = compiled.explain();
      EXPECT_LE(e.graphs.size(), 3u) << "sample " << at_ << ", " << name(layout) << "\n" << e.str();
    }
}

INSTANTIATE_TEST_SUITE_P(Table, Eager, testing::ValuesIn(composed_rows()),
                         [](const auto& i) { return test_name(i.param); });
INSTANTIATE_TEST_SUITE_P(Table, CompiledRow, testing::ValuesIn(composed_rows()),
                         [](const auto& i) { return test_name(i.param); });

}  // namespace
}  // namespace brasa::test
