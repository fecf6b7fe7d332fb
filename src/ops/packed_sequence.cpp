#include "ops/positions.h"
#include "ops/rows.h"
#include "support/error.h"

// Sequences of falling lengths, packed: the rows of all that are still there at step 0, then at step 1, …
namespace brasa::ops {
namespace {

constexpr DType kInt = DType::Int64;

Value rows_in_all(Value lengths) { return sum(convert(lengths, kInt), all_dims(lengths)); }

// {packed rows, how many there are at each step}
std::array<Value, 2> pack(Value input, Value lengths, bool batch_first, Expr rows) {
  constexpr const char* op = "_pack_padded_sequence";
  BRASA_CHECK(rank_of(input) >= 2, op, ": expected input of at least 2 dimensions, got ", type_of(input));
  BRASA_CHECK(rank_of(lengths) == 1 && dtype_of(lengths) == kInt, op,
              ": 'lengths' argument should be a 1D int64 tensor, but got ", type_of(lengths));
  BRASA_CHECK(same_size(size_of(lengths, 0), size_of(input, batch_first ? 0 : 1)), op,
              ": Expected `len(lengths)` to be equal to batch_size, got ", type_of(lengths), " for ", type_of(input));
  Value x = batch_first ? transpose(input, 0, 1) : input;
  Expr steps = size_of(x, 0), batch = size_of(x, 1);
  Shape grid = {steps, batch};
  Value length = with_sizes(convert(lengths, kInt), {batch});
  auto check = [&](Value v, const char* what) { check_values(v, str(op, ": ", what)); };
  check(gt(length, 0), "Length of all samples has to be greater than 0");
  // How many steps there are would be a second size that depends on data.
  check(eq(reduce(length, {0}, false, "max"), size_tensor(steps, {})),
        "expected as many steps as the longest sequence has; leave the others out of the input");
  check(ge(narrow(length, 0, 0, batch - 1), narrow(length, 0, 1, batch - 1)), "lengths must be in decreasing order");
  Value valid = lt(prim::iota(grid, 0, kInt), prim::broadcast(length, grid, {1}));
  Value flat = flattened(valid), end = size_tensor(rows, shape_of(flat));
  Value place = where(flat, prim::scan(convert(flat, kInt), 0, "add") - 1, end);
  Shape shape = shape_of(x);
  shape.erase(shape.begin());
  shape[0] = rows + 1;
  Value all = prim::scatter(full(0, shape, dtype_of(x)), {place}, merge_dims(x, 0, 1), {0}, "");
  return {narrow(all, 0, 0, rows), sum(convert(valid, kInt), {1})};
}

void check_packed(const char* op, Value data, Value sizes) {
  BRASA_CHECK(rank_of(data) >= 1 && rank_of(sizes) == 1 && is_integral(dtype_of(sizes)), op,
              ": expected rows and a vector of integer batch sizes, got ", type_of(data), " and ", type_of(sizes));
}

Value widest(Value data, Value sizes, bool, const Number&, int64_t) {
  check_packed("_pad_packed_sequence", data, sizes);
  return reduce(convert(sizes, kInt), {0}, false, "max");
}

// {padded, lengths}
std::array<Value, 2> pad(Value data, Value sizes, bool batch_first, const Number& padding, int64_t total, Expr batch) {
  constexpr const char* op = "_pad_packed_sequence";
  check_packed(op, data, sizes);
  BRASA_CHECK(is_complex(dtype_of(data)) || !is_complex(padding.dtype()), op, ": expected a padding value that ",
              name(dtype_of(data)), " holds, got a complex number");
  Expr steps = size_of(sizes, 0);
  Shape grid = {steps, batch};
  Value size = convert(sizes, kInt), before = prim::scan(size, 0, "add") - size;
  check_values(eq(rows_in_all(size), size_tensor(size_of(data, 0), {})),
               str(op, ": expected batch_sizes that sum to the number of rows, ", size_of(data, 0)));
  Value sample = prim::iota(grid, 1, kInt), valid = lt(sample, prim::broadcast(size, grid, {0}));
  Value at = prim::broadcast(before, grid, {0}) + sample;
  Value rows = prim::gather(data, {where(valid, at, zeros_like(at))}, {0});
  Value out = prim::select(prim::broadcast(valid, shape_of(rows), {0, 1}), rows, constant_like(rows, padding));
  if (total > 0) {
    BRASA_CHECK(!is_less(Expr(total), steps), op,
                ": Expected total_length to be at least the length of the longest "
                "sequence in input, but got total_length=",
                total, " and max sequence length being ", steps);
    out = pad_dim(out, 0, 0, Expr(total) - steps, padding);
  }
  return {batch_first ? transpose(out, 0, 1) : out, sum(convert(valid, kInt), {0})};
}

}  // namespace

void add_packed_sequence(Table& t) {
  t.op("aten::_pack_padded_sequence(Tensor input, Tensor lengths, bool batch_first) -> (Tensor, Tensor)")
      .doc("The rows of sequences of falling lengths, step by step, and how many there are at each step.")
      .sized([](Value, Value lengths, bool) { return rows_in_all(lengths); }, pack)
      .samples({{floats(1, 2, 3), ints(2).in(1, 2), false}, {floats(2, 1), ints(2).in(1, 2), true}});
  t.op("aten::_pad_packed_sequence(Tensor data, Tensor batch_sizes, bool batch_first, Scalar padding_value, int total_length) -> (Tensor, Tensor)")
      .doc(
          "Packed sequences beside one another, with padding behind their ends up to total_length (or the longest), and their lengths.")
      .sized(widest, pad)
      .samples({{floats(2, 3), ints(2).in(1, 2), false, 0.0, -1}, {floats(4), ints(2).in(2, 3), true, 0.5, 3}});
}

}  // namespace brasa::ops
