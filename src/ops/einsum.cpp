#include <algorithm>
#include <limits>

#include "ops/rows.h"
#include "ops/shapes.h"
#include "support/error.h"

namespace brasa::ops {
namespace {

using Labels = std::string;
// Labels of an ellipsis's dimensions, counted from the right, so that operands align as in broadcasting.
constexpr char kEllipsis = '\x80';

struct Term {
  Value value;
  Labels labels;
};

Labels parsed(const std::string& text, int64_t rank, const std::string& equation) {
  Labels out;
  bool ellipsis = false;
  int64_t named = 0;
  for (char c : text) named += c != '.';
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '.') {
      BRASA_CHECK(isalpha(static_cast<unsigned char>(text[i])), "einsum(): invalid subscript '", text[i], "' in '",
                  equation, "', subscripts must be in [a-zA-Z]");
      out += text[i];
      continue;
    }
    BRASA_CHECK(!ellipsis && text.substr(i, 3) == "...", "einsum(): found '.' that is not part of one ellipsis in '",
                equation, "'");
    ellipsis = true;
    i += 2;
    for (int64_t k = rank - named; k > 0; --k) out += static_cast<char>(kEllipsis + k - 1);
  }
  BRASA_CHECK(static_cast<int64_t>(out.size()) == rank, "einsum(): the number of subscripts in '", text,
              "' does not match the number of dimensions (", rank, ") of its operand in '", equation, "'");
  return out;
}

bool has(const Labels& labels, char c) { return labels.find(c) != Labels::npos; }

void summed_out(Term& t, const Labels& wanted) {
  Dims dims;
  Labels kept;
  for (size_t d = 0; d < t.labels.size(); ++d)
    has(wanted, t.labels[d]) ? (void)(kept += t.labels[d]) : dims.push_back(static_cast<int64_t>(d));
  t.value = sum(t.value, dims);
  t.labels = kept;
}

// A label that stands twice in one operand means its diagonal.
void diagonals_taken(Term& t) {
  for (size_t i = 0; i < t.labels.size(); ++i)
    for (size_t j = i + 1; j < t.labels.size();) {
      if (t.labels[i] != t.labels[j]) {
        ++j;
        continue;
      }
      auto di = static_cast<int64_t>(i), dj = static_cast<int64_t>(j);
      BRASA_CHECK(same_size(size_of(t.value, di), size_of(t.value, dj)), "einsum(): subscript ", t.labels[i],
                  " is repeated for dimensions of sizes ", size_of(t.value, di), " and ", size_of(t.value, dj));
      t.value = move_dims(diagonal(t.value, 0, di, dj), {-1}, {di});
      t.labels.erase(j, 1);
    }
}

// The product of two terms, keeping the labels that are `wanted` later.
Term contracted(Term a, Term b, const Labels& wanted) {
  summed_out(a, wanted + b.labels);
  summed_out(b, wanted + a.labels);
  // A size of 1 that meets another size is broadcast: it takes no part in the product.
  auto drop_ones = [](Term& t, const Term& other) {
    for (size_t d = 0; d < t.labels.size();) {
      size_t at = other.labels.find(t.labels[d]);
      auto dim = static_cast<int64_t>(d);
      if (at == Labels::npos || same_size(size_of(t.value, dim), size_of(other.value, static_cast<int64_t>(at))) ||
          !is_one(size_of(t.value, dim))) {
        ++d;
        continue;
      }
      t.value = squeeze(t.value, dim);
      t.labels.erase(d, 1);
    }
  };
  drop_ones(a, b);
  drop_ones(b, a);
  summed_out(a, wanted + b.labels);
  summed_out(b, wanted + a.labels);
  Dims ac, bc, ab, bb;
  Labels batch, free;
  for (size_t d = 0; d < a.labels.size(); ++d) {
    char c = a.labels[d];
    size_t at = b.labels.find(c);
    if (at == Labels::npos) {
      free += c;
      continue;
    }
    BRASA_CHECK(same_size(size_of(a.value, static_cast<int64_t>(d)), size_of(b.value, static_cast<int64_t>(at))),
                "einsum(): operands do not broadcast: subscript ", c, " has size ",
                size_of(a.value, static_cast<int64_t>(d)), " and size ", size_of(b.value, static_cast<int64_t>(at)));
    bool keep = has(wanted, c);
    (keep ? ab : ac).push_back(static_cast<int64_t>(d));
    (keep ? bb : bc).push_back(static_cast<int64_t>(at));
    if (keep) batch += c;
  }
  for (char c : b.labels)
    if (!has(a.labels, c)) free += c;
  return {prim::dot_general(a.value, b.value, ac, bc, ab, bb), batch + free};
}

Value einsum(std::string equation, std::vector<Value> operands, std::optional<Dims>) {
  std::erase(equation, ' ');
  BRASA_CHECK(!operands.empty(), "einsum(): must provide at least one operand");
  size_t arrow = equation.find("->");
  std::string inputs = equation.substr(0, arrow);
  std::vector<Term> terms;
  for (size_t i = 0, begin = 0; i < operands.size(); ++i) {
    BRASA_CHECK(begin <= inputs.size(), "einsum(): more operands were provided than specified in the equation '",
                equation, "'");
    size_t end = std::min(inputs.find(',', begin), inputs.size());
    terms.push_back({operands[i], parsed(inputs.substr(begin, end - begin), rank_of(operands[i]), equation)});
    BRASA_CHECK(dtype_of(operands[0]) == dtype_of(operands[i]),
                "einsum: expected both operands to have the same dtype, but got ", name(dtype_of(operands[0])), " and ",
                name(dtype_of(operands[i])));
    begin = end + 1;
    BRASA_CHECK(i + 1 < operands.size() || end == inputs.size(),
                "einsum(): fewer operands were provided than specified in the equation '", equation, "'");
  }
  Labels all;
  size_t ellipsis = 0;
  for (const Term& t : terms) {
    all += t.labels;
    ellipsis = std::max<size_t>(
        ellipsis, std::count_if(t.labels.begin(), t.labels.end(), [](char c) { return (c & kEllipsis) != 0; }));
  }
  Labels out;
  if (arrow == equation.npos) {
    // Without an arrow: the ellipsis, then what stands once, in alphabetical order.
    for (size_t k = ellipsis; k > 0; --k) out += static_cast<char>(kEllipsis + k - 1);
    for (int c = 'A'; c <= 'z'; ++c)
      if (std::count(all.begin(), all.end(), static_cast<char>(c)) == 1) out += static_cast<char>(c);
  } else {
    std::string text = equation.substr(arrow + 2);
    auto named = static_cast<int64_t>(std::count_if(text.begin(), text.end(), [](char c) { return c != '.'; }));
    out = parsed(text, named + (has(text, '.') ? static_cast<int64_t>(ellipsis) : 0), equation);
    for (size_t i = 0; i < out.size(); ++i) {
      BRASA_CHECK(has(all, out[i]), "einsum(): output subscript ", out[i],
                  " does not appear in the equation for any input operand");
      BRASA_CHECK(out.find(out[i], i + 1) == out.npos, "einsum(): output subscript ", out[i],
                  " appears more than once in the output");
    }
  }
  for (Term& t : terms) diagonals_taken(t);
  Term result = terms[0];
  for (size_t i = 1; i < terms.size(); ++i) {
    Labels wanted = out;
    for (size_t k = i + 1; k < terms.size(); ++k) wanted += terms[k].labels;
    result = contracted(result, terms[i], wanted);
  }
  summed_out(result, out);
  Dims order;
  for (char c : out) order.push_back(static_cast<int64_t>(result.labels.find(c)));
  return prim::transpose(result.value, order);
}

}  // namespace

void add_einsum(Table& t) {
  t.op("aten::einsum(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor")
      .doc("Sum of products in Einstein's notation; operands are multiplied from left to right.")
      .autocast(Autocast::Lower)
      .composed(einsum)
      .samples({{"bij,bjk->bik", std::vector<TensorSample>{floats(2, 3, 4), floats(2, 4, 1)}},
                {"ii->i", std::vector<TensorSample>{floats(3, 3)}},
                {"...a,a", std::vector<TensorSample>{floats(2, 3), floats(3)}}});
}

}  // namespace brasa::ops
