#include <gtest/gtest.h>

#include <brasa/call.h>
#include <brasa/compile.h>

#include "call.h"
#include "resized.h"
#include "samples.h"

// Every row's samples, eager and compiled, at their own sizes and at others, and strided: what they give is the interpreter's answer, an
// error where that is one.
namespace brasa::test {
namespace {

// Rows by position, in parts that may run side by side; a build that is slow takes one row of BRASA_ONE_ROW_OF.
constexpr size_t kParts = 4;
std::vector<size_t> part(size_t k) {
  std::vector<size_t> out;
  for (size_t i = k; i < composed_rows().size(); i += kParts * BRASA_ONE_ROW_OF) out.push_back(i);
  return out;
}
const std::string& row_name(size_t i) {
  static const std::vector<std::string> all = composed_rows();
  return all[i];
}

class Sizes : public testing::TestWithParam<size_t> {
 protected:
  const ops::Row& row() const { return ops::at(row_name(GetParam())); }
  // Each layout is code of its own, so neighbours in the table, which are alike, take turns.
  Layout other_layout() const {
    constexpr Layout kOthers[] = {Layout::Step, Layout::Transposed, Layout::Expanded};
    Layout turn = kOthers[GetParam() / kParts % std::size(kOthers)];
    return takes(row(), turn) ? turn : takes(row(), Layout::Step) ? Layout::Step : Layout::RowMajor;
  }

  void check(const ops::Sample& sample, const std::string& what, Manner manner, const Runner& runner) {
    SizedCall call(row(), sample, manner);
    auto wrong = call.check(runner);
    EXPECT_FALSE(wrong) << "sample " << at_ << " " << what << ", " << name(manner.layout) << ": " << *wrong;
    ++cases_;
    refused_ += call.refused();
  }
  void check_sizes(const ops::Sample& sample, Manner manner, const Runner& runner) {
    at_ = &sample - row().samples.data();
    check(sample, "as it is", manner, runner);
    for (const Resized& r : at_other_sizes(row(), sample))
      if (manner.layout == Layout::RowMajor || r.all) check(r.sample, r.what, manner, runner);
  }
  void TearDown() override {
    RecordProperty("cases", cases_);
    RecordProperty("refused", refused_);
  }

  int cases_ = 0, refused_ = 0, most_graphs_ = 0;
  int64_t at_ = 0;
};

class EagerSizes : public Sizes {};

TEST_P(EagerSizes, AreTheInterpreters) {
  Runner runner = [&](const auto& args) { return brasa::call(row().name(), args); };
  for (const ops::Sample& sample : row().samples) check_sizes(sample, {Layout::RowMajor, Gradients::OfLeaves}, runner);
  if (Layout layout = other_layout(); layout != Layout::RowMajor)
    check_sizes(row().samples[0], {layout, Gradients::OfLeaves}, runner);
}

class CompiledSizes : public Sizes {};

// One function is called with all sizes, which are symbolic from the first call.
TEST_P(CompiledSizes, AreTheInterpreters) {
  for (const ops::Sample& sample : row().samples) {
    auto compiled = compile([&](const std::vector<brasa::CallArg>& args) { return brasa::call(row().name(), args); },
                            {.dynamic = true});
    check_sizes(sample, {Layout::RowMajor, Gradients::OfClones}, [&](const auto& args) { return compiled(args); });
    auto graphs = static_cast<int>(compiled.explain().graphs.size());
    most_graphs_ = std::max(most_graphs_, graphs);
  }
  RecordProperty("graphs", most_graphs_);
}

#define BRASA_PART(k)                                                                   \
  INSTANTIATE_TEST_SUITE_P(Part##k, EagerSizes, testing::ValuesIn(part(k)),             \
                           [](const auto& i) { return test_name(row_name(i.param)); }); \
  INSTANTIATE_TEST_SUITE_P(Part##k, CompiledSizes, testing::ValuesIn(part(k)),          \
                           [](const auto& i) { return test_name(row_name(i.param)); })
BRASA_PART(0);
BRASA_PART(1);
BRASA_PART(2);
BRASA_PART(3);

}  // namespace
}  // namespace brasa::test
