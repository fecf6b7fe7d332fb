#include "compiler/kernels/tuner.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "check.h"
#include "compiler/fusion/fuse.h"
#include "compiler/kernels/disk_cache.h"
#include "compiler/pipeline.h"
#include "ops/algebra.h"
#include "runtime/thread_pool.h"

// Schedules that max-autotune measures.
namespace brasa::compiler {
namespace {

using ir::Value;
namespace prim = ops::prim;
using Values = std::vector<Value>;
using ops::operator*;
using ops::operator+;

struct Case {
  std::vector<testing::In> inputs;
  testing::Build build;
};

// A product with a bias, one with rows that are computed, one that runs along k; point-wise, sums of rows and of columns, a transposition.
std::vector<Case> cases() {
  constexpr DType t = DType::Float32;
  auto product = [](int64_t of_a, int64_t of_b) {
    return [=](const Values& v) {
      Value y = prim::dot_general(v[0], v[1], {of_a}, {of_b}, {}, {});
      return Values{y + prim::broadcast(v[2], ops::shape_of(y), {1})};
    };
  };
  return {
      {{{t, {150, 70}}, {t, {70, 130}}, {t, {130}}}, product(1, 0)},
      {{{t, {70, 150}}, {t, {130, 70}}, {t, {130}}}, product(0, 1)},
      {{{t, {150, 70}}, {t, {130, 70}}, {t, {130}}}, product(1, 1)},
      {{{DType::BFloat16, {90, 128}}, {DType::BFloat16, {128, 100}}, {DType::BFloat16, {100}}}, product(1, 0)},
      {{{t, {300, 1000}}}, [](const Values& v) { return Values{ops::exp(v[0]) * 3 + v[0]}; }},
      {{{t, {90, 500}}}, [](const Values& v) { return Values{prim::reduce(v[0] * v[0], {1}, "add")}; }},
      {{{t, {500, 90}}}, [](const Values& v) { return Values{prim::reduce(v[0] * 2, {0}, "add")}; }},
      {{{t, {300, 200}}}, [](const Values& v) { return Values{prim::transpose(v[0], {1, 0}) * 2}; }},
  };
}

TEST(Tuner, CandidatesGiveTheSameBits) {
  runtime::Device& host = runtime::host();
  Machine machine = machine_of(host.properties().target, 2);
  size_t tried = 0;
  for (const Case& c : cases()) {
    Primitives p;
    p.graph = std::make_unique<ir::Graph>(ir::Level::Primitives);
    ir::Facts facts;
    {
      ops::Builder builder(*p.graph, facts);
      Values inputs;
      for (const testing::In& in : c.inputs)
        inputs.push_back(p.graph->add_input({in.dtype, ir::Shape(in.sizes.begin(), in.sizes.end()), false},
                                            str("x", inputs.size())));
      for (Value v : c.build(inputs)) p.graph->add_output(v);
    }
    for (auto passes : {algebra_passes(), form_passes()})
      for (const GraphPass& pass : passes) pass.run(p, {facts, machine});
    for (const Group& group : fuse(*p.graph, p.in_memory, machine, p.groups).groups) {
      if (group.kind != GroupKind::Contraction && group.kind != GroupKind::Loops) continue;
      ExampleSizes sizes(facts, nullptr);
      Trial trial(group, host, "", sizes);
      ASSERT_TRUE(trial.prepare());
      std::mt19937 random(17);
      for (size_t i = 0; i < group.inputs.size(); ++i) {
        std::span<std::byte> bytes = trial.tensor(i);
        bool brain = type_of(group.inputs[i]).dtype == DType::BFloat16;
        for (size_t at = 0; at + 4 <= bytes.size(); at += 4) {
          auto x = std::uniform_real_distribution<float>(-1, 1)(random);
          uint32_t bits = 0;
          std::memcpy(&bits, &x, 4);
          if (brain) bits = (bits & 0xffff0000) | bits >> 16;
          std::memcpy(bytes.data() + at, &bits, 4);
        }
      }
      auto result = [&](const Schedule& s) {
        std::string out;
        for (size_t i = 0; i < group.outputs.size(); ++i)
          std::ranges::fill(trial.tensor(group.inputs.size() + i), std::byte{1});
        trial.measure({&s, 1});
        for (size_t i = 0; i < group.outputs.size(); ++i) {
          std::span<std::byte> bytes = trial.tensor(group.inputs.size() + i);
          out.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        }
        return out;
      };
      Schedule first = schedule(group, machine);
      std::string expected = result(first);
      for (const auto& set : candidates(group, machine, first))
        for (const Schedule& s : set) {
          EXPECT_EQ(result(s), expected) << str(group.domain, ": ", s, " beside ", first);
          ++tried;
        }
    }
  }
  EXPECT_GT(tried, 30u);
}

TEST(Tuner, ResultsAndTheKeptChoice) {
  if (DiskCache::get().folder().empty()) GTEST_SKIP() << "there is no disk cache";
  testing::Options options;
  options.compile.measure = true;
  testing::check(
      {{DType::Float32, {300, 200}, 0.01, 0.1}, {DType::Float32, {200, 300}, 0.01, 0.1}},
      [](const Values& v) { return Values{ops::exp(prim::dot_general(v[0], v[1], {1}, {0}, {}, {}))}; }, options);
  int64_t before = Tuner::measured();
  options.symbolic = true;
  auto again = [&] {
    testing::check(
        {{DType::Float32, {301, 200}, 0.1, 1}, {DType::Float32, {200, 300}, 0.1, 1}},
        [](const Values& v) { return Values{prim::dot_general(v[0], v[1], {1}, {0}, {}, {}) * 3}; }, options);
  };
  again();
  int64_t first = Tuner::measured() - before;
  again();
  EXPECT_EQ(Tuner::measured() - before, first) << "the choice is read from the disk";
}

// What has no elements has no last one, and the span of its strides may be negative.
TEST(Tuner, WithoutElementsNothingIsMeasured) {
  int64_t before = Tuner::measured();
  testing::Options options;
  options.compile.measure = true;
  options.symbolic = true;
  testing::check(
      {{DType::Float32, {0, 31}}, {DType::Float32, {31, 0}}},
      [](const Values& v) {
        return Values{ops::exp(v[0]) * prim::transpose(v[1], {1, 0}), prim::reduce(v[0] * 5, {0}, "add")};
      },
      options);
  EXPECT_EQ(Tuner::measured(), before);
}

TEST(Tuner, NoTimeMeasuresNothing) {
  int64_t before = Tuner::measured();
  testing::Options options;
  options.compile.measure = true;
  options.compile.tune_seconds = 0;
  testing::check({{DType::Float32, {77, 51}}}, [](const Values& v) { return Values{ops::exp(v[0]) * 0.77}; }, options);
  EXPECT_EQ(Tuner::measured(), before);
}

}  // namespace
}  // namespace brasa::compiler
