#include <brasa/brasa.h>
#include <brasa/compile.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

// Calls in place that read, or write twice, what they write: PyTorch's results and refusals, eager and compiled.
namespace brasa::test {
namespace {

struct Case {
  const char* name;
  Tensor (*make)();  // the memory
  void (*write)(const Tensor& memory);
  std::vector<float> gives;  // what is in memory then; none: the call is refused
};

Tensor ascending() { return arange(9, kFloat32); }
Tensor matrix() { return arange(9, kFloat32).view({3, 3}); }
Tensor row() { return tensor({{1.f, 2.f, 3.f}}); }
Tensor twice(const Tensor& t) { return t.expand({2, 3}); }
Tensor steps(const Tensor& t, int64_t from) { return t.slice(0, from, from + 6, 2); }
Tensor everywhere(const Tensor& t) { return ones_like(t, kBool); }
Tensor places() { return arange(8); }

const Case kCases[] = {
    // Elements that share memory, each of which stays or gets a number.
    {"fill", row, [](const Tensor& m) { twice(m).fill_(4); }, {4, 4, 4}},
    {"zero", row, [](const Tensor& m) { twice(m).zero_(); }, {0, 0, 0}},
    {"masked_fill",
     row,
     [](const Tensor& m) { twice(m).masked_fill_(tensor({{true, false, false}, {false, true, false}}), 9); },
     {9, 9, 3}},
    {"index_fill", row, [](const Tensor& m) { twice(m).index_fill_(0, tensor({1}), 7); }, {7, 7, 7}},
    {"index_fill_columns", row, [](const Tensor& m) { twice(m).index_fill_(1, tensor({1}), 7); }, {1, 7, 3}},
    {"tril", row, [](const Tensor& m) { m.expand({3, 3}).tril_(); }, {1, 0, 0}},
    {"triu", row, [](const Tensor& m) { m.expand({3, 3}).triu_(); }, {0, 0, 3}},
    {"windows",
     ascending,
     [](const Tensor& m) { m.slice(0, 2, 7).unfold(0, 3, 1).zero_(); },
     {0, 1, 0, 0, 0, 0, 0, 7, 8}},
    {"windows_with_gaps",
     ascending,
     [](const Tensor& m) { m.as_strided({2, 2}, {2, 2}).fill_(7); },
     {7, 1, 7, 3, 7, 5, 6, 7, 8}},
    // The others.
    {"add", row, [](const Tensor& m) { twice(m).add_(1); }, {}},
    {"exp", row, [](const Tensor& m) { twice(m).exp_(); }, {}},
    {"copy", row, [](const Tensor& m) { twice(m).copy_(ones({2, 3})); }, {}},
    {"clamp", row, [](const Tensor& m) { twice(m).clamp_(0, 2); }, {}},
    {"relu", row, [](const Tensor& m) { twice(m).relu_(); }, {}},
    // Dense operands that are not the very elements.
    {"shifted", ascending, [](const Tensor& m) { m.slice(0, 1).add_(m.slice(0, 0, -1)); }, {}},
    {"shifted_copy", ascending, [](const Tensor& m) { m.slice(0, 1).copy_(m.slice(0, 0, -1)); }, {}},
    {"shifted_lerp", ascending, [](const Tensor& m) { m.slice(0, 1).lerp_(m.slice(0, 0, -1), 0.5); }, {}},
    {"shifted_addcmul", ascending, [](const Tensor& m) { m.slice(0, 1).addcmul_(m.slice(0, 0, -1), ones({8})); }, {}},
    {"an_element", ascending, [](const Tensor& m) { m.div_(m[3]); }, {}},
    {"transposed", matrix, [](const Tensor& m) { m.add_(m.t()); }, {}},
    {"the_same", matrix, [](const Tensor& m) { m.add_(m); }, {0, 2, 4, 6, 8, 10, 12, 14, 16}},
    {"the_same_by_another_view",
     ascending,
     [](const Tensor& m) { m.view({3, 3}).mul_(m.view({3, 3})); },
     {0, 1, 4, 9, 16, 25, 36, 49, 64}},
    {"apart", ascending, [](const Tensor& m) { m.slice(0, 0, 3).add_(m.slice(0, 3, 6)); }, {3, 5, 7, 3, 4, 5, 6, 7, 8}},
    // With gaps nobody looks: what is read is read before it is written.
    {"interleaved",
     ascending,
     [](const Tensor& m) { m.slice(0, 0, 8, 2).add_(m.slice(0, 1, 9, 2)); },
     {1, 1, 5, 3, 9, 5, 13, 7, 8}},
    {"gaps", ascending, [](const Tensor& m) { steps(m, 0).add_(steps(m, 2)); }, {2, 1, 6, 3, 10, 5, 6, 7, 8}},
    // What finds places must be apart even from the same elements.
    {"index_add", ascending, [](const Tensor& m) { m.slice(0, 1).index_add_(0, places(), m.slice(0, 0, -1)); }, {}},
    {"index_add_itself", ascending, [](const Tensor& m) { m.index_add_(0, arange(9), m); }, {}},
    {"index_copy", ascending, [](const Tensor& m) { m.index_copy_(0, arange(9), m); }, {}},
    {"index_put", ascending, [](const Tensor& m) { m.index_put_({arange(9)}, m); }, {}},
    {"scatter", ascending, [](const Tensor& m) { m.scatter_(0, arange(9), m); }, {}},
    {"scatter_add", ascending, [](const Tensor& m) { m.scatter_add_(0, arange(9), m); }, {}},
    // Where one has gaps they are read before anything is written.
    {"index_add_gaps",
     ascending,
     [](const Tensor& m) { steps(m, 0).index_add_(0, arange(3).flip(0), steps(m, 0)); },
     {4, 1, 4, 3, 4, 5, 6, 7, 8}},
    {"index_copy_gaps",
     ascending,
     [](const Tensor& m) { steps(m, 0).index_copy_(0, arange(3).flip(0), steps(m, 0)); },
     {4, 1, 2, 3, 0, 5, 6, 7, 8}},
    {"index_put_gaps",
     ascending,
     [](const Tensor& m) {
       Tensor part = steps(m, 0);
       part.index_put_({arange(3).flip(0)}, part);
     },
     {4, 1, 2, 3, 0, 5, 6, 7, 8}},
    {"scatter_gaps",
     ascending,
     [](const Tensor& m) { steps(m, 0).scatter_(0, arange(3).flip(0), steps(m, 0)); },
     {4, 1, 2, 3, 0, 5, 6, 7, 8}},
    // Results that are given.
    {"out_shifted",
     ascending,
     [](const Tensor& m) {
       Tensor out = m.slice(0, 1);
       add_out(out, m.slice(0, 0, -1), ones({8}));
     },
     {}},
    {"out_the_same",
     ascending,
     [](const Tensor& m) {
       Tensor out = m;
       add_out(out, m, m);
     },
     {0, 2, 4, 6, 8, 10, 12, 14, 16}},
    {"out_gathered",
     ascending,
     [](const Tensor& m) {
       Tensor out = m;
       gather_out(out, m, 0, arange(9).flip(0));
     },
     {}},
    {"out_product",
     matrix,
     [](const Tensor& m) {
       Tensor out = m;
       mm_out(out, m, m);
     },
     {15, 18, 21, 42, 54, 66, 69, 90, 111}},
    // Those that read everything first.
    {"addmm", matrix, [](const Tensor& m) { m.addmm_(m, m); }, {15, 19, 23, 45, 58, 71, 75, 97, 119}},
    {"masked_scatter",
     ascending,
     [](const Tensor& m) { m.masked_scatter_(everywhere(m), m); },
     {0, 1, 2, 3, 4, 5, 6, 7, 8}},
    {"fill_by_own", ascending, [](const Tensor& m) { m.fill_(m[5]); }, {5, 5, 5, 5, 5, 5, 5, 5, 5}},
};

class Overlap : public testing::TestWithParam<Case> {};

void check(const Case& c, const std::function<void(const Tensor&)>& write) {
  Tensor memory = c.make();
  try {
    write(memory);
    ASSERT_FALSE(c.gives.empty()) << "taken";
    EXPECT_TRUE(memory.view({-1}).equal(tensor(c.gives))) << memory;
  } catch (const Error& e) {
    EXPECT_TRUE(c.gives.empty()) << e.what();
    EXPECT_NE(std::string(e.what()).find("unsupported operation: "), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("Please clone() the tensor before performing the operation."),
              std::string::npos);
    EXPECT_TRUE(memory.equal(c.make()));
  }
}

TEST_P(Overlap, Eager) { check(GetParam(), GetParam().write); }

TEST_P(Overlap, Compiled) {
  auto f = compile([](const Tensor& memory) {
    GetParam().write(memory);
    return memory + 0;
  });
  for (int again = 0; again < 2; ++again) check(GetParam(), [&](const Tensor& memory) { f(memory); });
}

INSTANTIATE_TEST_SUITE_P(InPlace, Overlap, testing::ValuesIn(kCases), [](const auto& i) { return i.param.name; });

TEST(Overlap, WordsAreLibTorchs) {
  auto words = [](const std::function<void()>& call) -> std::string {
    try {
      call();
    } catch (const Error& e) {
      return e.what_without_backtrace();
    }
    return "taken";
  };
  Tensor m = ascending();
  EXPECT_NE(words([&] { m.slice(0, 1).add_(m.slice(0, 0, -1)); })
                .find("unsupported operation: some elements of the input tensor and the written-to tensor refer to a "
                      "single memory location. Please clone() the tensor before performing the operation."),
            std::string::npos);
}

}  // namespace
}  // namespace brasa::test
