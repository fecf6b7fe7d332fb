#include "program/variants.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "runtime/device.h"
#include "support/epoch.h"

namespace brasa::program {
namespace {

// Of one operand with a size, and a name that says which it is.
const Variant* add(const VariantOwner& owner, uint64_t word, std::vector<ir::Fact> facts = {}) {
  auto graph = std::make_unique<ir::Graph>();
  graph->add_input({DType::Float32, {ir::Expr::size(0)}});
  graph->name = str(word);
  Variant v{Program(std::move(graph), runtime::host()), nullptr};
  v.program.conditions = Conditions(std::move(facts));
  return VariantCache::get().insert({owner, {&word, 1}}, std::move(v));
}

const Variant* find(const VariantOwner& owner, uint64_t word, int64_t size = 3) {
  const int64_t sizes[] = {size}, strides[] = {1};
  compiler::Operand operand{nullptr, DType::Float32, sizes, strides};
  SymbolValues symbols;
  return VariantCache::get().find({owner, {&word, 1}}, {&operand, 1}, symbols);
}

TEST(Variants, BySignatureOwnerAndConditions) {
  VariantOwner a, b;
  Epoch::Reading reading;
  EXPECT_FALSE(find(a, 7));
  const Variant* small = add(a, 7, {{ir::Expr::size(0), ir::Expr(1), true}});
  const Variant* large = add(a, 7, {{ir::Expr::size(0), ir::Expr(1), false}});
  EXPECT_EQ(find(a, 7, 1), small);
  EXPECT_EQ(find(a, 7, 2), large);
  EXPECT_FALSE(find(a, 8, 1));
  EXPECT_FALSE(find(b, 7, 1));
}

// One that serves all sizes does not stand before those that are made for some.
TEST(Variants, OfMoreFactsAreAskedFirst) {
  VariantOwner owner;
  Epoch::Reading reading;
  ir::Expr s = ir::Expr::size(0);
  const Variant* small = add(owner, 7, {{ir::min(s, ir::Expr(8)), s, true}, {s, ir::Expr(0), false}});
  const Variant* two = add(owner, 7, {{s, ir::Expr(2), true}, {s, ir::Expr(0), false}, {s, ir::Expr(1), false}});
  const Variant* all = add(owner, 7, {{s, ir::Expr(0), false}});
  EXPECT_EQ(find(owner, 7, 5), small);
  EXPECT_EQ(find(owner, 7, 2), two);
  EXPECT_EQ(find(owner, 7, 9), all);
  const Variant* nine = add(owner, 7, {{s, ir::Expr(9), true}, {s, ir::Expr(0), false}});
  EXPECT_EQ(find(owner, 7, 9), nine);
  EXPECT_EQ(find(owner, 7, 10), all);
}

TEST(Variants, SayWhatDoesNotHold) {
  VariantOwner owner;
  uint64_t word = 7;
  const int64_t sizes[] = {3}, strides[] = {1};
  compiler::Operand operand{nullptr, DType::Float32, sizes, strides};
  Epoch::Reading reading;
  add(owner, word, {{ir::Expr::size(0), ir::Expr(1), true}});
  add(owner, word, {{ir::Expr::size(0), ir::Expr(3), false}});
  std::vector<ir::Fact> failed = VariantCache::get().failed({owner, {&word, 1}}, {&operand, 1});
  ASSERT_EQ(failed.size(), 2u);
  EXPECT_NE(str(failed[0]), str(failed[1]));
}

// Programs of a variant may have variants of their own.
TEST(Variants, GoWithTheirOwner) {
  struct Nested : Attachment {
    VariantOwner owner;
  };
  size_t before = VariantCache::get().size();
  {
    VariantOwner owner;
    auto nested = std::make_shared<Nested>();
    add(nested->owner, 1);
    auto graph = std::make_unique<ir::Graph>();
    uint64_t word = 2;
    VariantCache::get().insert({owner, {&word, 1}},
                               {Program(std::move(graph), runtime::host()), nullptr, std::move(nested)});
    add(owner, 3);
    Epoch::Reading reading;
    EXPECT_EQ(VariantCache::get().of(owner).size(), 2u);
    EXPECT_EQ(VariantCache::get().size(), before + 3);
    VariantOwner moved = std::move(owner);
    EXPECT_TRUE(find(moved, 3));
  }
  VariantOwner other;
  EXPECT_TRUE(VariantCache::get().of(other).empty());
  EXPECT_LE(VariantCache::get().size(), before + 1) << "the nested one goes when what held it is freed";
}

TEST(Variants, TheLeastRecentlyUsedGo) {
  VariantOwner owner;
  VariantCache& cache = VariantCache::get();
  cache.set_limit(16);
  {
    Epoch::Reading reading;
    for (uint64_t w = 0; w < 10; ++w) add(owner, 1000 + w);
    for (uint64_t w = 10; w < 40; ++w) {
      add(owner, 1000 + w);
      ASSERT_TRUE(find(owner, 1003)) << "in use all the time";
    }
  }
  EXPECT_LE(cache.size(), 16u);
  EXPECT_TRUE(find(owner, 1039));
  EXPECT_FALSE(find(owner, 1000));
  EXPECT_GT(cache.evicted(), 0u);
  cache.set_limit(8192);
}

// Readers use what they found while a writer takes it away; the address sanitizer sees what is freed too early.
TEST(Variants, ReadersBesideAWriter) {
  VariantOwner owner;
  VariantCache& cache = VariantCache::get();
  cache.set_limit(64);
  std::atomic<bool> stop{false};
  std::atomic<int64_t> seen{0}, wrong{0};
  std::vector<std::thread> readers;
  for (int t = 0; t < 3; ++t)
    readers.emplace_back([&] {
      for (uint64_t w = 0; !stop; ++w) {
        Epoch::Reading reading;
        if (const Variant* v = find(owner, 5000 + w % 500)) {
          ++seen;
          wrong += v->program.graph->name != str(5000 + w % 500);
        }
      }
    });
  for (int round = 0; round < 20; ++round)
    for (uint64_t w = 0; w < 500; ++w) add(owner, 5000 + w);
  while (seen == 0) std::this_thread::yield();
  stop = true;
  for (std::thread& r : readers) r.join();
  EXPECT_EQ(wrong, 0);
  cache.set_limit(8192);
}

}  // namespace
}  // namespace brasa::program
