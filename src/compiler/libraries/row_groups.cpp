#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include <brasa/elements.h>

#include "compiler/libraries/order.h"
#include "compiler/libraries/rows.h"
#include "support/error.h"

// Rows of a matrix in lexicographic order, and which of them begin a group of equal ones. Rows are sorted by a column, and those
// that are equal there by the next one: mostly a few columns decide.
namespace brasa::compiler {
namespace {

// Fewer rows than these are compared as a whole.
constexpr int64_t kFewRows = 16;

template <class T>
class Matrix {
 public:
  Matrix(const T* data, int64_t rows, int64_t columns) : data_(data), rows_(rows), columns_(columns) {}
  int64_t rows() const { return rows_; }

  bool equal(int64_t a, int64_t b) const {
    const T *x = row(a), *y = row(b);
    return std::equal(x, x + columns_, y);
  }

  // Sorts all places of rows.
  void sort(int64_t* order) {
    struct Tie {
      int64_t begin, end, column;
    };
    std::vector<Tie> ties = {{0, rows_, 0}};
    while (!ties.empty()) {
      auto [begin, end, column] = ties.back();
      ties.pop_back();
      if (end - begin < 2 || column == columns_) continue;
      if (end - begin <= kFewRows) {
        std::stable_sort(order + begin, order + end,
                         [&, from = column](int64_t a, int64_t b) { return less(a, b, from); });
        continue;
      }
      sort_by(column, order + begin, end - begin);
      // What became of the keys, in their new order: where they are equal the next column decides.
      for (int64_t first = begin, i = begin + 1; i <= end; ++i)
        if (i == end || key(order[i], column) != key(order[first], column)) {
          if (i - first > 1) ties.push_back({first, i, column + 1});
          first = i;
        }
    }
  }

 private:
  const T* row(int64_t r) const { return data_ + r * columns_; }
  uint64_t key(int64_t r, int64_t column) const { return ordinal(row(r)[column]); }

  bool less(int64_t a, int64_t b, int64_t column) const {
    for (; column < columns_; ++column)
      if (uint64_t x = key(a, column), y = key(b, column); x != y) return x < y;
    return false;
  }

  void sort_by(int64_t column, int64_t* order, int64_t count) {
    keys_.all.resize(static_cast<size_t>(count));
    keys_.fill([&](size_t i) { return key(order[i], column); });
    if (keys_.least == keys_.greatest) return;
    places_.resize(keys_.all.size());
    order_.arrange(keys_, 0, places_.size(), places_.data());
    for (int64_t& place : places_) place = order[place];
    std::copy(places_.begin(), places_.end(), order);
  }

  const T* data_;
  int64_t rows_, columns_;
  Keys keys_;
  KeyOrder order_;
  std::vector<int64_t> places_;
};

// prim::row_groups(rows, sorted)
void run(const LibraryCall& call) {
  const LibraryTensor& x = call.inputs[0];
  auto* order = static_cast<int64_t*>(call.outputs[0].data);
  auto* starts = static_cast<bool*>(call.outputs[1].data);
  visit_dtype(x.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    if constexpr (std::is_convertible_v<T, double>) {
      using Element = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;
      Matrix<Element> rows(static_cast<const Element*>(x.data), x.sizes[0], x.sizes[1]);
      std::iota(order, order + rows.rows(), 0);
      if (call.args[1].get<bool>()) rows.sort(order);
      for (int64_t i = 0; i < rows.rows(); ++i) starts[i] = i == 0 || !rows.equal(order[i - 1], order[i]);
    } else {
      fail_internal(str("groups of rows of ", name(x.dtype)));
    }
  });
}

}  // namespace

const Implementation kRowGroups = {
    .library = "host", .name = "groups of rows", .primitive = "prim::row_groups", .run = run};

}  // namespace brasa::compiler
