#include <brasa/brasa.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <sstream>

#include "ops/table.h"
#include "samples.h"
#include "support/str.h"

// Random calls of tensors of one shape and of numbers, of which a later one may be served like an earlier one (src/tensor/repeat.h),
// against the same calls on views that may need gradients, which are looked at as a whole.
namespace brasa::test {
namespace {

using ir::ParamType;

class Calls {
 public:
  explicit Calls(uint32_t seed) : pick_(seed) {}

  int64_t below(int64_t n) { return static_cast<int64_t>(pick_() % static_cast<uint64_t>(n)); }

  Tensor operand(IntArrayRef sizes) {
    static const DType kDtypes[] = {kFloat32, kFloat32, kFloat32, kFloat64, kInt64, kInt32, kBool, kUInt8, kBFloat16};
    Tensor t = (rand(sizes) * 6 - 3).to(kDtypes[below(9)]);
    return below(8) ? t : t.flatten()[0].clone();
  }

  Scalar number() {
    static const double kReal[] = {1, -1, 0, 0.5, 2, 20, -0.0, 1e-8, 3.25, 1e30, INFINITY, NAN};
    static const int64_t kInts[] = {0, 1, 2, -1, 20, 3, 7, -5, (1LL << 53) + 1, INT64_MIN, INT64_MAX, 1LL << 31};
    switch (below(5)) {
      case 0: return Scalar(below(2) != 0);
      case 1:
      case 2: return Scalar(kReal[below(12)]);
      default: return Scalar(kInts[below(12)]);
    }
  }

 private:
  std::mt19937 pick_;
};

// Of a row that may be called so, the number of its arguments; at most three.
size_t arguments_of(const ops::Row& row) {
  const auto& params = row.schema.params;
  bool called = row.name().starts_with("aten::") && !params.empty() && params[0].type == ParamType::Tensor &&
                !row.view && !row.random && row.schema.index_of("generator") < 0 && row.memory == ops::Memory::None;
  size_t n = 0;
  auto fits = [](const ir::Param& p) {
    return !p.list && (p.type == ParamType::Tensor || p.type == ParamType::Scalar || p.type == ParamType::Float);
  };
  while (called && n < std::min<size_t>(3, params.size()) && fits(params[n])) ++n;
  return n == params.size() || params[n].default_value || params[n].optional ? n : 0;
}

std::string outcome(const ops::Row& row, const std::vector<brasa::CallArg>& args, std::vector<Tensor>& results) {
  try {
    results = brasa::call(row.name(), args);
  } catch (const Error& e) {
    return "error";
  } catch (const std::exception& e) {
    return e.what();
  }
  return "";
}

bool same(const Tensor& a, const Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() &&
         (a.equal(b) || a.allclose(b, 1e-6, 1e-6, /*equal_nan=*/true));
}

std::string shown(const Tensor& t) {
  std::ostringstream out;
  out << t;
  return out.str();
}

TEST(Repeats, OfRandomCallsAreThoseCalls) {
  std::vector<const ops::Row*> rows;
  for (const ops::Row& row : ops::table().rows())
    if (arguments_of(row)) rows.push_back(&row);
  ASSERT_GT(rows.size(), 50u);
  const char* given = std::getenv("BRASA_FUZZ_SEED");
  const char* how_many = std::getenv("BRASA_FUZZ_CALLS");
  uint32_t seed = given ? static_cast<uint32_t>(std::atoi(given)) : 1;
  Calls calls(seed);
  manual_seed(seed);
  const ops::Row* row = nullptr;
  int64_t failed = 0, worked = 0;
  for (int64_t i = 0, n = how_many ? std::atoll(how_many) : 1500; i < n; ++i) {
    if (i % 12 == 0) row = rows[static_cast<size_t>(calls.below(static_cast<int64_t>(rows.size())))];
    if (calls.below(500) == 0) set_variant_limit(16), set_variant_limit(8192);
    std::vector<int64_t> sizes;
    for (int64_t d = calls.below(3); d >= 0; --d) sizes.push_back(1 + calls.below(3));
    std::vector<Tensor> tensors, views;
    std::vector<Scalar> numbers;
    tensors.reserve(3), views.reserve(3), numbers.reserve(3);
    std::vector<brasa::CallArg> args, same_args;
    std::string text;
    size_t least = 0, most = arguments_of(*row);
    for (size_t k = 0; k < most; ++k)
      if (!row->schema.params[k].default_value && !row->schema.params[k].optional) least = k + 1;
    size_t count = least + static_cast<size_t>(calls.below(static_cast<int64_t>(most - least) + 1));
    for (size_t k = 0; k < count; ++k) {
      const ir::Param& p = row->schema.params[k];
      bool number = p.type != ParamType::Tensor || (k > 0 && calls.below(4) == 0);
      if (number && p.default_value && calls.below(3) == 0 && p.type == ParamType::Scalar) {
        const ir::Arg& a = *p.default_value;
        if (auto* e = a.get_if<ir::Expr>())
          numbers.push_back(Scalar(e->constant()));
        else if (auto* d = a.get_if<double>())
          numbers.push_back(Scalar(*d));
        else
          numbers.push_back(calls.number());
      } else if (number) {
        numbers.push_back(calls.number());
      }
      if (number) {
        args.emplace_back(numbers.back());
        same_args.emplace_back(numbers.back());
        text += str(" ", numbers.back().toDouble(),
                    numbers.back().isFloatingPoint() ? "f"
                    : numbers.back().isBoolean()     ? "b"
                                                     : "i");
      } else {
        tensors.push_back(calls.operand(sizes));
        views.push_back(tensors.back().view(tensors.back().sizes()));
        args.emplace_back(tensors.back());
        same_args.emplace_back(views.back());
        text += str(" ", name(tensors.back().scalar_type()), tensors.back().dim() ? "" : "()");
      }
    }
    std::vector<Tensor> got, expected;
    std::string a, b = outcome(*row, same_args, expected);
    {
      NoGradGuard guard;
      a = outcome(*row, args, got);
    }
    (b.empty() ? worked : failed) += 1;
    EXPECT_TRUE((a.empty() || a == "error") && a == b) << a << "\n"
                                                       << b << "\n"
                                                       << row->name() << text << ", seed " << seed << ", call " << i;
    for (size_t r = 0; r < got.size(); ++r)
      EXPECT_TRUE(same(got[r], expected[r])) << row->name() << text << ", seed " << seed << ", call " << i << "\n"
                                             << shown(got[r]) << "\n"
                                             << shown(expected[r]);
    if (::testing::Test::HasFailure()) break;
  }
  std::cout << rows.size() << " rows, " << worked << " calls worked, " << failed << " did not\n";
}

}  // namespace
}  // namespace brasa::test
