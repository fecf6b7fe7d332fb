#include <algorithm>
#include <atomic>
#include <fstream>
#include <stdexcept>

#include <brasa/brasa.h>
#include <brasa/data.h>
#include <brasa/serialize.h>
#include <gtest/gtest.h>

namespace brasa::data {
namespace {

struct Numbers : datasets::BatchDataset<Numbers, std::vector<size_t>> {
  std::vector<size_t> get_batch(ArrayRef<size_t> indices) override { return {indices.begin(), indices.end()}; }
  std::optional<size_t> size() const override { return 10; }
};

TEST(Loader, IteratorsOfAPassGoTogether) {
  auto loader = make_data_loader<samplers::SequentialSampler>(Numbers(), 5);
  auto i = loader->begin(), j = i;
  EXPECT_NE(i, loader->end());
  ++i;
  EXPECT_EQ((*j)[0], 5u);
  ++j;
  EXPECT_EQ(i, loader->end());
  EXPECT_THROW(++i, Error);
  EXPECT_THROW(*i, Error);
  auto end = loader->end();
  EXPECT_THROW(*end, Error);
}

std::atomic<int> copies{0};
struct Counted : Numbers {
  Counted() = default;
  Counted(const Counted& o) : Numbers(o) { ++copies; }
  Counted(Counted&&) = default;
};

TEST(Loader, EveryWorkerHasItsOwnDataset) {
  copies = 0;
  auto loader = make_data_loader(Counted(), samplers::SequentialSampler(10), DataLoaderOptions(2).workers(3));
  EXPECT_EQ(copies, 3);
  std::vector<size_t> seen;
  for (auto& batch : *loader) seen.insert(seen.end(), batch.begin(), batch.end());
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
  EXPECT_EQ(seen.size(), 10u);
}

struct Failing : Numbers {
  std::vector<size_t> get_batch(ArrayRef<size_t>) override { throw std::invalid_argument("no such file"); }
};

TEST(Loader, WhatAWorkerThrowsArrives) {
  auto loader = make_data_loader(Failing(), samplers::SequentialSampler(10), DataLoaderOptions(2).workers(2));
  try {
    loader->begin().operator*();
    FAIL();
  } catch (const WorkerException& e) {
    EXPECT_NE(e.message.find("no such file"), std::string::npos);
    EXPECT_THROW(std::rethrow_exception(e.original_exception), std::invalid_argument);
  }
}

TEST(Samplers, ReplicasShareOutTheExamples) {
  for (bool duplicates : {true, false}) {
    std::vector<size_t> all;
    for (size_t rank = 0; rank < 3; ++rank) {
      samplers::DistributedRandomSampler sampler(10, 3, rank, duplicates);
      while (auto batch = sampler.next(2)) all.insert(all.end(), batch->begin(), batch->end());
    }
    std::sort(all.begin(), all.end());
    EXPECT_EQ(all, duplicates ? (std::vector<size_t>{0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9})
                              : (std::vector<size_t>{0, 1, 2, 3, 4, 5, 6, 7, 8}));
  }
}

void write(const std::string& path, std::vector<unsigned char> bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

TEST(MNIST, ReadsImagesAndLabels) {
  std::string root = testing::TempDir();
  write(root + "/t10k-images-idx3-ubyte", {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2, 0, 51, 102, 255});
  write(root + "/t10k-labels-idx1-ubyte", {0, 0, 8, 1, 0, 0, 0, 2, 7, 3});
  datasets::MNIST digits(root, datasets::MNIST::Mode::kTest);
  ASSERT_EQ(digits.size(), 2u);
  EXPECT_EQ(digits.images().sizes(), IntArrayRef({2, 1, 1, 2}));
  EXPECT_TRUE(digits.get(0).data.flatten().allclose(tensor({0.f, 0.2f})));
  EXPECT_EQ(digits.get(1).target.item<int64_t>(), 3);
  write(root + "/t10k-labels-idx1-ubyte", {0, 0, 8, 1, 0, 0, 0, 2, 7});
  EXPECT_THROW(datasets::MNIST(root, datasets::MNIST::Mode::kTest), Error);
  EXPECT_THROW(datasets::MNIST(root + "/nowhere"), Error);
}

TEST(Archives, HoldPlainValues) {
  serialize::OutputArchive out;
  out.write("steps", autograd::IValue(3));
  out.write("rate", autograd::IValue(0.1));
  out.write("weight", autograd::IValue(ones({2})));
  serialize::InputArchive in(out.contents());
  autograd::IValue v;
  in.read("steps", v);
  EXPECT_EQ(v.toInt(), 3);
  in.read("rate", v);
  EXPECT_EQ(v.toDouble(), 0.1);
  in.read("weight", v);
  EXPECT_TRUE(v.toTensor().equal(ones({2})));
  EXPECT_THROW(v.toInt(), Error);
  EXPECT_THROW(in.read("missing", v), Error);
}

TEST(Samplers, GoOnWhereTheyWereSavedWhateverTheirSizeIsYet) {
  samplers::SequentialSampler saved(9), loaded(0);
  saved.next(4);
  serialize::OutputArchive out;
  out << saved;
  serialize::InputArchive in(out.contents());
  in >> loaded;
  EXPECT_EQ(loaded.index(), 4u);
  EXPECT_EQ(loaded.next(2), std::nullopt);
}

}  // namespace
}  // namespace brasa::data
