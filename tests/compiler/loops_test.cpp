#include <gtest/gtest.h>

#include <algorithm>

#include "check.h"
#include "ops/running.h"

namespace brasa::compiler {
namespace {

using namespace testing;
using ir::Expr;
using ir::Value;
using ops::operator+;
using ops::operator-;
using ops::operator*;
using ops::operator/;
using Values = std::vector<Value>;
namespace prim = ops::prim;

const std::vector<int64_t> kSizes = {0, 1, 2, 17, 1000};

TEST(Pointwise, Chain) {
  for (int64_t n : kSizes)
    check_both({{DType::Float32, {n}}, {DType::Float32, {n}}},
               [](const Values& v) { return Values{ops::tanh(v[0] * v[1] + 1.5), v[0] - v[1]}; });
}

TEST(Pointwise, Broadcast) {
  for (int64_t n : {1, 2, 17})
    check_both({{DType::Float32, {3, n}}, {DType::Float32, {n}}},
               [](const Values& v) { return Values{v[0] + prim::broadcast(v[1], ops::shape_of(v[0]), {1})}; });
}

TEST(Pointwise, Strided) {
  check_both({{DType::Float32, {5, 7}, -2, 2, {1, 5}}, {DType::Float32, {5, 7}, -2, 2, {14, 2}}},
             [](const Values& v) { return Values{v[0] * v[1]}; });
}

TEST(Pointwise, Dtypes) {
  for (DType t : {DType::Float32, DType::Float64, DType::BFloat16, DType::Float16, DType::Int8, DType::UInt8,
                  DType::Int16, DType::Int32, DType::Int64})
    for (int64_t n : {1, 67})
      check_both({{t, {n}, 0, 5}, {t, {n}, 0, 5}}, [](const Values& v) {
        return Values{prim::binary("add", v[0], v[1]), prim::binary("max", prim::binary("mul", v[0], v[1]), v[1]),
                      prim::binary("lt", v[0], v[1]), prim::convert(v[0], DType::Float32),
                      prim::convert(v[1], DType::Bool)};
      });
}

TEST(Movement, Views) {
  check_both({{DType::Float32, {4, 6, 5}}}, [](const Values& v) {
    Value x = v[0];
    return Values{prim::transpose(x, {2, 0, 1}), prim::reverse(x, {1, 2}),
                  prim::reshape(x, {ops::size_of(x, 0) * ops::size_of(x, 1), ops::size_of(x, 2)}),
                  prim::slice(x, {1, 0, 2}, {2, 3, 2}, {1, 2, 1})};
  });
  check({{DType::Float32, {4, 6}}}, [](const Values& v) {
    Value t = prim::reshape(prim::transpose(v[0], {1, 0}), {8, 3});
    return Values{t, ops::exp(prim::reshape(t, {2, 12}))};
  });
}

TEST(Movement, PadConcatWindow) {
  for (int64_t n : {1, 2, 13}) {
    check_both({{DType::Float32, {3, n}}, {DType::Float32, {2, n}}, {DType::Float32, {}}}, [](const Values& v) {
      return Values{prim::pad(v[0], v[2], {1, 0}, {2, 1}, {0, 0}), prim::pad(v[0], v[2], {0, 2}, {0, 0}, {1, 2}),
                    prim::concat({v[0], v[1], v[0]}, 0)};
    });
  }
  check_both({{DType::Float32, {2, 11}}}, [](const Values& v) { return Values{prim::window(v[0], 1, 3, 2, 2)}; });
  check({{DType::Float32, {3, 40}}, {DType::Float32, {3, 3}}},
        [](const Values& v) { return Values{prim::concat({v[1], v[0]}, 1) * 2}; });
}

// The rows that are joined are read by both parts of a later row, and what is joined with them is computed once in a pass over it.
TEST(Movement, JoinedRowsInAPassOverThem) {
  check_both({{DType::Float32, {5, 32}}, {DType::Float32, {4, 32}}, {DType::Float32, {4, 32}}}, [](const Values& v) {
    auto normalised = [](Value x) {
      Value centred = x - ops::sum(x, {1}, true) / 32.0;
      return centred * prim::unary("rsqrt", ops::sum(centred * centred, {1}, true) / 32.0 + 1e-5);
    };
    auto rest = [](Value x) { return ops::slice(x, 0, 1, 5, 1); };
    auto first = [](Value x) { return ops::slice(x, 0, 0, 1, 1); };
    Value x = prim::concat({first(v[0]), normalised(v[1])}, 0) + v[0];
    return Values{normalised(prim::concat({first(x), rest(x) + normalised(v[2])}, 0))};
  });
}

TEST(Creation, IotaAndSizes) {
  check_both({{DType::Float32, {5, 9}}}, [](const Values& v) {
    ir::Shape s = ops::shape_of(v[0]);
    return Values{prim::iota(s, 1, DType::Int64), prim::iota(s, 0, DType::Float32) + v[0],
                  prim::full(2.5, s, DType::Float64), prim::size_value(s[1])};
  });
}

TEST(Indexing, Gather) {
  for (int64_t n : {1, 5, 33})
    check_both({{DType::Float32, {7, n}}, {DType::Int64, {4, 3}, 0, 7}},
               [](const Values& v) { return Values{prim::gather(v[0], {v[1]}, {0})}; });
  check_both({{DType::Float32, {7, 5, 3}}, {DType::Int64, {6}, 0, 7}, {DType::Int64, {6}, 0, 3}},
             [](const Values& v) { return Values{prim::gather(v[0], {v[1], v[2]}, {0, 2})}; });
}

TEST(Indexing, Scatter) {
  for (const char* how : {"", "add", "max", "min", "mul"})
    for (int64_t n : {1, 5, 70}) {
      if (how[0] == 0 && n == 5) continue;
      check_both(
          {{DType::Float32, {9, n}}, {DType::Int64, {how[0] ? 6 : 1}, 0, 9}, {DType::Float32, {how[0] ? 6 : 1, n}}},
          [how](const Values& v) { return Values{prim::scatter(v[0], {v[1]}, v[2], {0}, how)}; });
    }
  check_both({{DType::Int64, {9}, 0, 50}, {DType::Int64, {20}, 0, 9}, {DType::Int64, {20}, 0, 9}},
             [](const Values& v) { return Values{prim::scatter(ops::zeros_like(v[0]), {v[1]}, v[2], {0}, "add")}; });
}

TEST(Reduce, Rows) {
  for (int64_t n : kSizes)
    for (const char* how : {"add", "max", "min", "mul"})
      check_both({{DType::Float32, {5, n}, 0.9, 1.1}},
                 [how](const Values& v) { return Values{prim::reduce(v[0], {1}, how)}; });
}

TEST(Reduce, Columns) {
  for (int64_t n : {0, 1, 2, 17, 200})
    check_both({{DType::Float32, {37, n}}}, [](const Values& v) { return Values{prim::reduce(v[0], {0}, "add")}; });
  check_both({{DType::Float32, {4, 5, 6, 7}}}, [](const Values& v) {
    return Values{prim::reduce(v[0], {0, 2}, "add"), prim::reduce(v[0], {1, 3}, "max"),
                  prim::reduce(v[0], {0, 2, 3}, "add")};
  });
}

TEST(Reduce, Large) {
  check_both(
      {{DType::Float32, {100000}}}, [](const Values& v) { return Values{prim::reduce(v[0], {0}, "add")}; }, 1e-3);
  check_both({{DType::Float32, {3000, 5}}}, [](const Values& v) { return Values{prim::reduce(v[0], {0}, "max")}; });
  check_both(
      {{DType::Float32, {3001, 40}}}, [](const Values& v) { return Values{prim::reduce(v[0] * v[0], {0}, "add")}; },
      1e-3);
}

// What a gather fetches of each image, by an index of each place: parts of the places of one image after the other.
TEST(Reduce, GatheredOfImages) {
  auto sums = [](const Values& v) {
    const ir::Shape& shape = ops::shape_of(v[1]);
    Value image = prim::iota(shape, 0, DType::Int64), place = prim::iota(shape, 1, DType::Int64);
    Value picked = prim::gather(v[0], {image, v[1], place}, {0, 1, 2});
    return Values{ops::sum(picked, {0, 1}), prim::reduce(v[1], {0, 1}, "max")};
  };
  for (int64_t images : {1, 3})
    for (int64_t places : {1, 1023, 40001})
      check_both({{DType::Float32, {images, 5, places}, 0.5, 1.5}, {DType::Int64, {images, places}, 0, 4}}, sums, 1e-3);
}

TEST(Reduce, Dtypes) {
  for (DType t :
       {DType::Float64, DType::BFloat16, DType::Float16, DType::Int8, DType::UInt8, DType::Int32, DType::Int64})
    for (const char* how : {"add", "max", "min"})
      check_both({{t, {5, 67}, 0, 3}}, [how](const Values& v) { return Values{prim::reduce(v[0], {1}, how)}; });
  for (const char* how : {"and", "or"})
    check_both({{DType::Bool, {5, 3}, 0, 2}}, [how](const Values& v) { return Values{prim::reduce(v[0], {1}, how)}; });
}

TEST(Reduce, Arg) {
  for (int64_t n : {1, 2, 17, 100})
    check_both({{DType::Float32, {5, n}}}, [](const Values& v) {
      return Values{prim::arg_reduce(v[0], 1, "max"), prim::arg_reduce(v[0], 1, "min"),
                    prim::arg_reduce(v[0], 0, "max")};
    });
}

Value softmax(Value x, int64_t dim) {
  Value e = ops::exp(x - ops::amax(x, {dim}, true));
  return e / ops::sum(e, {dim}, true);
}

Value layer_norm(Value x) {
  Value mean = ops::mean(x, {1}, true), d = x - mean;
  return d * ops::rsqrt(ops::mean(d * d, {1}, true) + 1e-5);
}

TEST(Rows, SoftmaxAndNorm) {
  for (int64_t n : {1, 2, 17, 200}) {
    check_both({{DType::Float32, {5, n}}}, [](const Values& v) { return Values{softmax(v[0], 1)}; });
    check_both({{DType::Float32, {n, 9}}}, [](const Values& v) { return Values{softmax(v[0], 0)}; });
    check_both({{DType::Float32, {5, n}}}, [](const Values& v) { return Values{layer_norm(v[0] + 1)}; });
  }
  Report r = check({{DType::Float32, {64, 256}}}, [](const Values& v) { return Values{softmax(layer_norm(v[0]), 1)}; });
  EXPECT_EQ(r.kernels_after, 1);
}

// Values that are used twice, by what meets again, are computed where that is.
TEST(Loops, LongChainsAreOneKernel) {
  Report r = check({{DType::Float32, {7, 9}}}, [](const Values& v) {
    Value y = v[0];
    for (int i = 0; i < 40; ++i) {
      Value s = prim::unary("sin", y);
      y = y + s * s * 0.01;
    }
    return Values{y};
  });
  EXPECT_EQ(r.kernels_after, 1);
}

// Rows that others than their own elements' shape read: groups of channels, and columns laid out anew.
TEST(Rows, ReadInAnotherShape) {
  auto groups = [](const Values& v) {
    Value x = prim::reshape(v[0], {2, 2, 9});
    return Values{prim::reshape(x - ops::mean(x, {2}, true), {2, 6, 3}) * v[1]};
  };
  check({{DType::Float32, {2, 6, 3}}, {DType::Float32, {2, 6, 3}}}, groups);
  for (int64_t n : {9, 3000}) {
    auto columns = [n](const Values& v) {
      return Values{prim::reshape(v[0] - ops::mean(v[0], {0}, true), {3, 4 * n / 3})};
    };
    check({{DType::Float32, {4, n}}}, columns);
  }
}

// Elements 2 to 5 apart, read and written, where a line ends between vectors and outside of it.
TEST(Memory, FewSteps) {
  for (DType t : {DType::Bool, DType::Int16, DType::Float32, DType::Float64})
    for (int64_t step : {2, 3, 4, 5})
      for (int64_t n : {1, 16, 37, 131}) {
        In every{t, {3, n}, 0, 2, {n * step, step}};
        check_both({every, {t, {3, n}, 0, 2}}, [](const Values& v) { return Values{ops::maximum(v[0], v[1])}; });
        check_both({{t, {3, n * step}, 0, 2}}, [=](const Values& v) {
          return Values{ops::maximum(prim::slice(v[0], {Expr(0), Expr(0)}, {Expr(3), Expr(n)}, {Expr(1), Expr(step)}),
                                     prim::full(0, {Expr(3), Expr(n)}, t))};
        });
        Options into;
        into.into = {0};
        check({every, {t, {3, n}, 0, 2}}, [](const Values& v) { return Values{ops::maximum(v[0], v[1])}; }, into);
      }
}

// What is joined and padded along rows that are whole vectors, less and more, and sums whose last part is shorter than the others.
TEST(Memory, Borders) {
  for (DType t : {DType::Int8, DType::Float32, DType::Float64})
    for (int64_t n : {3, 16, 45})
      check_both({{t, {3, n}, 0, 2}, {t, {3, 20}, 0, 2}, {t, {}, 0, 2}}, [](const Values& v) {
        Value joined = prim::concat({v[0], v[1], v[0]}, 1);
        Value padded = prim::pad(joined, v[2], {0, 5}, {1, 11}, {0, 0});
        return Values{joined, padded, prim::reduce(prim::window(padded, 1, 3, 2, 1), {2}, "max")};
      });
  auto sums = [](const Values& v) { return Values{ops::sum(v[0], {0}), prim::reduce(v[0], {0}, "max")}; };
  for (int64_t n : {0, 1, 16384, 16385, 50001}) {
    for (DType t : {DType::Int32, DType::Float64}) check_both({{t, {n}}}, sums);
    check_both({{DType::Int8, {n}}}, [](const Values& v) { return Values{prim::reduce(v[0], {0}, "max")}; });
  }
}

// What is added to a row of several parts, and lies where their sum goes, is added once, also where the last vectors of parts overlap others.
TEST(Memory, PartsOfWhatIsOverwritten) {
  for (bool symbolic : {false, true})
    for (int64_t before : {1, 5, 19})
      for (int64_t n : {3, 16, 29, 45}) {
        Options o;
        o.symbolic = symbolic;
        o.into = {2};
        std::vector<In> in = {
            {DType::Float32, {3, before}}, {DType::Float32, {3, n}}, {DType::Float32, {3, before + n}}};
        check(in, [](const Values& v) { return Values{prim::concat({v[0], v[1]}, 1) + v[2]}; }, o);
        in[2].sizes[1] = n + 4;
        auto bordered = [](const Values& v) {
          Value zero = prim::full(0, {}, DType::Float32);
          return Values{prim::pad(v[1], zero, {0, 1}, {0, 3}, {0, 0}) * v[2]};
        };
        check(in, bordered, o);
      }
}

// Lanes that share elements, from any of the lanes of one on, within borders and without.
TEST(Memory, SharedElements) {
  for (DType t : {DType::Bool, DType::Int16, DType::Float32, DType::Int64})
    for (int64_t share : {2, 3, 4})
      for (int64_t n : {1, 11, 40})
        check_both({{t, {3, n}, 0, 2}, {t, {}, 0, 2}}, [=](const Values& v) {
          Values out;
          for (int64_t border : {0, 2}) {
            Value x = prim::pad(v[0], v[1], {0, border}, {0, border}, {0, 0});
            Expr count = ops::size_of(x, 1);
            x = prim::reshape(prim::broadcast(x, {3, count, share}, {0, 1}), {3, count * share});
            for (int64_t first : {0, 1})
              out.push_back(prim::slice(x, {0, first}, {2 + first, count * share - first}, {1, 1}));
          }
          return out;
        });
}

// Copies that exchange two dimensions, whose tiles are transposed in registers up to ends of any kind.
TEST(Memory, Transposed) {
  for (DType t : {DType::Bool, DType::Int16, DType::BFloat16, DType::Float32, DType::Float64})
    for (int64_t rows : {1, 7, 33, 75})
      for (int64_t columns : {3, 32, 50}) {
        check_both({{t, {2, rows, columns}, 0, 2}, {t, {}, 0, 2}}, [](const Values& v) {
          Value x = prim::transpose(v[0], {0, 2, 1}), wide = prim::pad(v[0], v[1], {0, 1, 0}, {0, 0, 3}, {0, 0, 0});
          return Values{prim::concat({x, x}, 1), prim::transpose(wide, {2, 0, 1})};
        });
      }
}

// Rows of one element beside such a copy: what they give, and what it is computed with, ends where the rows do.
// Results that lie along different dimensions of what both read are kernels of their own, each of which turns squares.
TEST(Memory, TurnedTwice) {
  auto kernels = [](std::vector<int64_t> second) {
    auto both = [&](const Values& v) {
      return Values{prim::transpose(v[0], {2, 1, 0}) * 2, prim::transpose(v[0], second) + 1};
    };
    check_both({{DType::Float32, {48, 32, 64}}}, both);
    return check({{DType::Float32, {48, 32, 64}}}, both).kernels.size();
  };
  EXPECT_EQ(kernels({2, 0, 1}), 2U);
  EXPECT_EQ(kernels({2, 1, 0}), 1U);
}

TEST(Memory, TransposedRowsOfOneElement) {
  for (DType t : {DType::Int16, DType::Float32})
    for (int64_t rows : {5, 16, 40})
      for (int64_t columns : {3, 33})
        check_both({{t, {1, rows, columns}}, {t, {columns, rows}}}, [](const Values& v) {
          Value x = prim::transpose(v[0], {2, 1, 0});
          return Values{x, prim::arg_reduce(x, 2, "max"), prim::reduce(x, {2}, "max"),
                        prim::reduce(x, {2}, "add") * v[1]};
        });
}

// Results whose last dimension has two or four elements, which are made and written side by side.
TEST(Memory, Interleaved) {
  for (DType t : {DType::Bool, DType::Int16, DType::BFloat16, DType::Float32, DType::Float64})
    for (int64_t parts : {2, 4})
      for (int64_t n : {1, 7, 64, 75}) {
        auto build = [=](const Values& v) {
          Values list;
          for (int64_t i = 0; i < parts; ++i) {
            Value read = prim::slice(v[1], {0, 0, parts - 1 - i}, {3, n, 1}, {1, 1, 1});
            list.push_back(i % 2 ? read : prim::reshape(v[0], {3, n, 1}));
          }
          return Values{prim::concat(list, 2), ops::maximum(v[1], prim::transpose(v[2], {1, 2, 0}))};
        };
        Report r = check({{t, {3, n}, 0, 2}, {t, {3, n, parts}, 0, 2}, {t, {parts, 3, n}, 0, 2}}, build);
        bool whole_row = std::max<int64_t>(size_of(t), 4) * parts >= 16;  // fills the shortest vectors
        EXPECT_TRUE(n < 64 || whole_row || str(r.kernels).find("spelled out") != std::string::npos) << str(r.kernels);
      }
  check_both({{DType::Float32, {40, 30}}, {DType::Float32, {40, 30}}}, [](const Values& v) {
    Value x = prim::reshape(v[0], {ops::size_of(v[0], 0), ops::size_of(v[0], 1), 1}),
          y = prim::reshape(v[1], {ops::size_of(v[0], 0), ops::size_of(v[0], 1), 1});
    return Values{prim::concat({x * y, x - y}, 2)};
  });
}

// Rows shorter than a vector, which is filled from several: operands that are the same in all rows or along one, other parts of longer and
// shorter rows, in both directions.
TEST(Memory, ShortRows) {
  for (DType t : {DType::Bool, DType::Int16, DType::BFloat16, DType::Float32, DType::Float64})
    for (int64_t row : {3, 5, 6, 7})
      for (int64_t n : {1, 9, 37, 131}) {
        auto build = [=](const Values& v) {
          ir::Shape shape{3, n, row};
          Value x = prim::broadcast(v[0], shape, {0, 2}), y = prim::broadcast(v[1], shape, {0, 1});
          Value part = prim::slice(v[2], {0, 0, 1}, {3, n, row}, {1, 1, 1});
          Value longer = prim::pad(prim::slice(v[2], {0, 0, 0}, {3, n, row - 2}, {1, 1, 1}), v[3], {0, 0, 1}, {0, 0, 1},
                                   {0, 0, 0});
          return Values{ops::maximum(ops::maximum(x, y), prim::reverse(part, {2})), ops::maximum(longer, y),
                        prim::concat({longer, part}, 1)};
        };
        Report r = check({{t, {3, row}, 0, 2}, {t, {3, n}, 0, 2}, {t, {3, n, row + 2}, 0, 2}, {t, {}, 0, 2}}, build);
        bool in_steps = str(r.kernels).find(str("[", 3 * n * row, "]; width")) != std::string::npos;
        EXPECT_TRUE(n < 131 || row < 5 || in_steps) << str(r.kernels);
      }
}

// A sum of fewer elements than a vector has, beside more of what is kept.
TEST(Reduce, ShortRows) {
  for (int64_t n : {1, 5, 37})
    for (int64_t k : {2, 3, 7})
      check_both({{DType::Float32, {2, n, k, 2}}}, [](const Values& v) {
        return Values{ops::sum(v[0], {3}), prim::reduce(v[0] * v[0], {2, 3}, "max"), prim::arg_reduce(v[0], 3, "min"),
                      ops::call("aten::_softmax", {v[0], 3, false})};
      });
}

TEST(Scan, Dims) {
  for (const char* how : {"add", "max"})
    check_both({{DType::Float32, {5, 19}}},
               [how](const Values& v) { return Values{prim::scan(v[0], 0, how), prim::scan(v[0], 1, how)}; });
  check_both({{DType::Int64, {5, 19}}}, [](const Values& v) { return Values{prim::scan(v[0], 1, "add")}; });
}

// Several in one kernel with what they are made of and what is made of them, in vectors and beside them, with ends of every length.
TEST(Scan, WithOthers) {
  using Sizes = std::vector<int64_t>;
  for (DType t : {DType::Float32, DType::Float64, DType::BFloat16})
    for (const Sizes& shape : {Sizes{3, 37}, Sizes{70, 3}, Sizes{2, 5, 33}, Sizes{1, 1}, Sizes{0, 4}})
      for (int64_t dim = 0; dim < static_cast<int64_t>(shape.size()); ++dim)
        check_both({{t, shape}}, [dim](const Values& v) {
          Value x = v[0] * v[0], most = prim::scan(v[0], dim, "max");
          Value here = prim::iota(ops::shape_of(x), dim, DType::Int64);
          return Values{prim::scan(x, dim, "add") + v[0], most,
                        prim::scan(ops::where(ops::eq(v[0], most), here, ops::zeros_like(here)), dim, "max"),
                        prim::scan(prim::scan(v[0], dim, "min"), dim, "add")};
        });
}

// Running sums whose steps have factors: by themselves, beside others, and their derivatives.
TEST(Scan, WithFactors) {
  using Sizes = std::vector<int64_t>;
  for (DType t : {DType::Float32, DType::BFloat16})
    for (const Sizes& shape : {Sizes{3, 37}, Sizes{1, 1}})
      for (int64_t dim = 0; dim < static_cast<int64_t>(shape.size()); ++dim)
        check_both({{t, shape}, {t, shape}}, [dim](const Values& v) {
          Value factor = ops::tanh(v[1]), sum = prim::recurrence(v[0], factor, dim);
          Value before = ops::previous(sum, dim, 0);
          return Values{sum, before, prim::scan(v[0] * v[0], dim, "add") + sum};
        });
}

// Operands of selects that are long enough for a branch, in which others share values: all lanes take one, none does, or some.
TEST(Select, LongOperands) {
  for (DType t : {DType::Float32, DType::Float64})
    for (double bound : {-9.0, 0.3, 9.0})
      check_both({{t, {3, 37}}}, [bound](const Values& v) {
        Value x = v[0], shared = ops::exp(x) * ops::sin(x), left = shared, right = ops::cos(x) + 2.0;
        for (int i = 0; i < 12; ++i) left = x - ops::tanh(left * x), right = ops::sqrt(ops::abs(right * x)) + x;
        Value inner = ops::where(ops::lt(x, bound - 0.5), ops::exp(left) * ops::cos(left), ops::exp(-right) * shared);
        return Values{ops::where(ops::lt(x, bound), inner, right), ops::where(ops::gt(x, bound), shared, x)};
      });
  // A sum that one operand alone needs is made in its own loop.
  check_both({{DType::Float32, {37}, 0.5, 2}}, [](const Values& v) {
    Value all = ops::sum(ops::log(v[0]), {0}), product = prim::reduce(v[0], {0}, "mul");
    return Values{ops::where(ops::lt(product, 0), ops::exp(all) * ops::sin(all), product)};
  });
}

TEST(Sort, Dims) {
  for (bool down : {false, true})
    check_both({{DType::Float32, {4, 19, 3}}}, [down](const Values& v) {
      auto [a, b] = prim::sort(v[0], 1, down);
      return Values{a, b};
    });
}

TEST(Library, AnyPlaceAndSize) {
  // Operands that are computed, strided, constants; one operand for two; results that are used, overwrite an input, or are not needed.
  for (int64_t n : {0, 1, 2, 17})
    check_both({{DType::Float32, {n, 6}, -2, 2, {1, n}}, {DType::Int16, {n}, -9, 9}}, [](const Values& v) {
      auto [a, i] = prim::sort(v[0] * v[0], 0, false);
      auto [b, j] = prim::sort(v[0], 1, true);
      return Values{a + b, i, prim::sort(v[1], 0, true)[0],
                    prim::sort(prim::full(2.5, ops::shape_of(v[1]), DType::Float32), 0, false)[1]};
    });
  Options o;
  o.into = {0};
  check({{DType::Float32, {5, 3}}}, [](const Values& v) { return Values{prim::sort(v[0], 0, false)[0]}; }, o);
  check(
      {{DType::Float32, {5, 3}, -2, 2, {1, 5}}}, [](const Values& v) { return Values{prim::sort(v[0], 0, false)[0]}; },
      o);
}

TEST(Memory, IntoInputs) {
  Options o;
  o.into = {0, 1};
  check(
      {{DType::Float32, {100}}, {DType::Float32, {100}}},
      [](const Values& v) { return Values{v[0] + v[1], v[1] * v[0]}; }, o);
  o.into = {0};
  check({{DType::Float32, {6, 7}, -2, 2, {1, 6}}}, [](const Values& v) { return Values{v[0] * 2}; }, o);
  check({{DType::Float32, {6, 6}}}, [](const Values& v) { return Values{prim::transpose(v[0], {1, 0})}; }, o);
  o.into = {-1, 0, -1};
  check({{DType::Float32, {6, 6}}}, [](const Values& v) { return Values{v[0], v[0] + 1, v[0] + 1}; }, o);
}

}  // namespace
}  // namespace brasa::compiler
