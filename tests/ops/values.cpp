#include <brasa/brasa.h>
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <set>

#include "eager_call.h"
#include "ops/table.h"
#include "support/str.h"

// Numbers of eager calls: one that is new needs no new code (every row is called with many values of each of its numbers).
namespace brasa::test {
namespace {

constexpr int kValues = 50;
// What facts about sizes tell apart: a size of 0 or 1, a number that is one of the special ones or the default, a sign.
constexpr int64_t kMost = 10;

// The k-th value of an argument like this one; nothing where it is no number that varies.
std::optional<ir::Arg> varied(const ir::Param& p, const ir::Arg& arg, int k) {
  if (p.use == ir::NumberUse::Known) return std::nullopt;
  auto more = [&](ir::Expr e) { return ir::Expr(e.constant() + (e.constant() < 0 ? -k : k)); };
  if (auto* d = arg.get_if<double>()) return ir::Arg(*d * (1 + 0.013 * k) + (*d == 0 ? 0.013 * k : 0));
  if (auto* e = arg.get_if<ir::Expr>()) return ir::Arg(more(*e));
  if (auto* list = arg.get_if<std::vector<ir::Expr>>()) {
    std::vector<ir::Expr> items;
    for (ir::Expr e : *list) items.push_back(more(e));
    return ir::Arg(items);
  }
  return std::nullopt;
}

// Whether some number of the call varies.
bool varies(const ops::Row& row, const SampleArgs& args) {
  for (size_t i = 0; i < args.size(); ++i)
    if (auto* literal = std::get_if<ir::Arg>(&args[i]); literal && varied(row.schema.params[i], *literal, 1))
      return true;
  return false;
}

class Values : public ::testing::TestWithParam<std::string> {};

TEST_P(Values, OfANumberShareCode) {
  const ops::Row& row = ops::at(GetParam());
  const auto& params = row.schema.params;
  for (const ops::Sample& sample : row.samples) {
    SampleArgs args = sample.args;
    for (size_t i = args.size(); i < params.size() && params[i].type != ir::ParamType::Generator; ++i)
      args.emplace_back(params[i].default_value.value_or(ir::Arg()));
    for (size_t i = 0; i < args.size(); ++i) {
      auto* literal = std::get_if<ir::Arg>(&args[i]);
      if (!literal || !varied(params[i], *literal, 1)) continue;
      int64_t before = stats().compilations;
      int worked = 0;
      for (int k = 0; k < kValues; ++k) {
        SampleArgs now = args;
        now[i] = *varied(params[i], *literal, k);
        try {
          EagerCall call(row, now);
          brasa::call(row.name(), call.args());
          ++worked;
        } catch (const Error&) {
          // Not every value is right for the other arguments.
        }
      }
      EXPECT_LE(stats().compilations - before, kMost)
          << row.name() << ": " << worked << " values of " << params[i].name;
    }
  }
}

// Of eager calls, where numbers are inputs: a derivative must not ask for their values.
TEST_P(Values, AreNotNeededForGradients) {
  const ops::Row& row = ops::at(GetParam());
  if (row.no_gradient) GTEST_SKIP() << "has no gradient";
  for (const ops::Sample& sample : row.samples) {
    if (!varies(row, sample.args)) continue;
    EagerCall call(row, sample.args, true);
    std::vector<Tensor> outputs, cotangents;
    for (const Tensor& t : brasa::call(row.name(), call.args()))
      if (t.defined() && t.requires_grad()) {
        outputs.push_back(t);
        cotangents.push_back(ones_like(t));
      }
    if (!outputs.empty()) {
      EXPECT_NO_THROW(autograd::grad(outputs, call.asked(), cotangents, std::nullopt, false, true));
    }
  }
}

// --- numbers that graphs know ---

const std::string kDocumented = BRASA_TEST_DATA "/../../docs/numbers.md";

std::vector<std::string> quoted(const std::string& cell) {
  static const std::regex kName("`([^`]+)`");
  std::vector<std::string> out;
  for (std::sregex_iterator m(cell.begin(), cell.end(), kName), end; m != end; ++m) out.push_back((*m)[1]);
  return out;
}

// The names of the first table's lines: "parameter" for all operators, "operator parameter" for one.
std::set<std::string> documented() {
  std::set<std::string> out;
  std::ifstream file(kDocumented);
  bool inside = false;
  for (std::string line; std::getline(file, line) && (line.starts_with("|") || !inside);) {
    inside = inside || line.starts_with("|");
    size_t second = line.find('|', 1), third = line.find('|', second + 1);
    if (!inside || third == std::string::npos) continue;
    std::vector<std::string> rows = quoted(line.substr(second, third - second));
    for (const std::string& parameter : quoted(line.substr(0, second))) {
      if (rows.empty()) out.insert(parameter);
      for (const std::string& row : rows) out.insert(row + " " + parameter);
    }
  }
  return out;
}

bool is_known_number(const ir::Param& p) {
  using T = ir::ParamType;
  return p.use == ir::NumberUse::Known && (p.type == T::Scalar || p.type == T::Int || p.type == T::Float);
}

TEST(KnownNumbers, AreListed) {
  const std::set<std::string> listed = documented();
  std::set<std::string> unused = listed;
  for (const std::string& name : composed_rows()) {
    const ir::Schema& schema = ops::at(name).schema;
    for (const ir::Param& p : schema.params) {
      if (!is_known_number(p)) continue;
      std::string own = schema.base + " " + p.name;
      EXPECT_TRUE(listed.count(p.name) || listed.count(own)) << name << " knows " << p.name;
      unused.erase(p.name);
      unused.erase(own);
    }
  }
  for (const std::string& name : unused) ADD_FAILURE() << "no operator knows " << name;
}

INSTANTIATE_TEST_SUITE_P(Rows, Values, ::testing::ValuesIn(composed_rows()),
                         [](const auto& info) { return test_name(info.param); });

}  // namespace
}  // namespace brasa::test
