#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "loops/kernel.h"

// Places that lanes were given and rows share: near each other, apart, and at the end of the memory behind which there is none.
namespace brasa::compiler::test {
namespace {

// Elements that end where a page does, with a page behind them that may not be read.
template <class T>
class AtTheEnd {
 public:
  explicit AtTheEnd(const std::vector<T>& elements) : page_(static_cast<size_t>(sysconf(_SC_PAGESIZE))) {
    size_t bytes = elements.size() * sizeof(T);
    mapped_ = (bytes / page_ + 2) * page_;
    memory_ =
        static_cast<std::byte*>(mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    std::byte* end = memory_ + mapped_ - page_;
    mprotect(end, page_, PROT_NONE);
    data = reinterpret_cast<T*>(end - bytes);
    std::copy(elements.begin(), elements.end(), data);
  }
  AtTheEnd(const AtTheEnd&) = delete;
  AtTheEnd& operator=(const AtTheEnd&) = delete;
  ~AtTheEnd() { munmap(memory_, mapped_); }

  T* data;

 private:
  size_t page_, mapped_;
  std::byte* memory_;
};

class SharedPlaces : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Targets, SharedPlaces, testing::ValuesIn(targets()), [](const auto& info) {
  std::string name = info.param;
  std::replace_if(name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
});

constexpr int64_t kRows = 3, kResults = 53;

// The places of each way to go through rows of so many elements.
std::vector<std::vector<int32_t>> ways(int64_t columns) {
  std::vector<std::vector<int32_t>> out(7);
  for (int64_t i = 0; i < kResults; ++i) {
    auto add = [&](size_t way, int64_t place) {
      out[way].push_back(static_cast<int32_t>(std::clamp<int64_t>(place, 0, columns - 1)));
    };
    add(0, i / 2);  // twice as many results
    add(1, i);
    add(2, i * 2);            // half as many
    add(3, i * 5);            // far apart
    add(4, columns - 1 - i);  // in reverse
    add(5, i * i * 7 % columns);
    add(6, columns - 1);  // the last element alone
  }
  return out;
}

template <class T>
void check_rows(DType t, const std::string& target, int lanes, bool condition) {
  Kernel k;
  Expr columns = Expr::size(0), asked = Expr::size(1);
  Value x = k.b.buffer(t, kRows * columns), table = k.b.buffer(DType::Int32, kResults),
        out = k.b.buffer(t, kRows * kResults);
  Expr row = k.b.loop("parallel", kRows), r = k.b.loop("vector", kResults, lanes);
  Expr place = k.b.bind(k.b.convert(k.b.load(table, r), DType::Int64), columns);
  // Of all lanes, or of those in front of one.
  Value some = k.b.op("lt", {k.b.index(condition ? Expr(0) : r), k.b.index(asked)});
  k.b.store(out, row * kResults + r, k.b.load(x, row * columns + place, some));
  k.compile(target);
  for (int64_t so_many : {1, 5, 16, 31, 40, 300})
    for (const std::vector<int32_t>& places : ways(so_many))
      for (int64_t first : {int64_t{0}, int64_t{21}, kResults}) {
        auto elements = ramp<T>(kRows * so_many, 1, 1);
        AtTheEnd<T> in(elements);
        auto at = places;
        std::vector<T> got(kRows * kResults);
        k.run({in.data, at.data(), got.data()}, {so_many, first});
        for (int64_t i = 0; i < kRows * kResults; ++i) {
          bool is_asked = condition ? first > 0 : i % kResults < first;
          T want = is_asked ? elements[i / kResults * so_many + places[i % kResults]] : T{};
          ASSERT_EQ(got[i], want) << i << " of rows of " << so_many << ", lanes " << lanes;
        }
      }
}

TEST_P(SharedPlaces, OfEveryWidth) {
  for (bool condition : {false, true}) {
    for (int lanes : {4, 8, 16}) check_rows<float>(DType::Float32, GetParam(), lanes, condition);
    for (int lanes : {4, 8}) check_rows<double>(DType::Float64, GetParam(), lanes, condition);
    for (int lanes : {8, 16, 32}) check_rows<int16_t>(DType::Int16, GetParam(), lanes, condition);
  }
}

}  // namespace
}  // namespace brasa::compiler::test
