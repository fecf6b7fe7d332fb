#include "ops/attention.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <optional>
#include <vector>

#include "compiler/compile.h"
#include "compiler/fusion/fuse.h"
#include "compiler/libraries/operands.h"
#include "compiler/libraries/rows.h"
#include "compiler/libraries/scratch.h"
#include "compiler/passes/transform.h"
#include "compiler/pipeline.h"
#include "compiler/run/size_program.h"
#include "ops/random_key.h"
#include "runtime/thread_pool.h"
#include "support/error.h"
#include "support/half.h"
#include "support/small_vector.h"

// Attention of long sequences on the host, block by block: some queries of a head and some of its keys, whose scores stay in a thread's
// cache, so that there is never a matrix of all of them (Dao et al. 2022). Blocks behind the diagonal of a causal one are left out. What a
// block computes is a compiled graph.
namespace brasa::compiler {
namespace {

// The symbols of a block's graph: kFirst is how many keys the first row attends to, and kMostRows more; kMaskRow and kSumRow how many
// elements are from a row of the mask, and of its gradient, to the next; kScores how many scores a row of all has.
enum : uint32_t { kRows, kKeys, kFirst, kMaskRow, kSumRow, kScores, kSymbols };
using Symbols = std::array<int64_t, kSymbols>;
constexpr int64_t kMostRows = 128, kMostKeys = 512;
// Parts of a gradient that there are at least, where rows suffice.
constexpr int64_t kLeastTasks = 16;

// Rows of [batch, heads, length, features] in contiguous memory, or of [batch, length, heads, features].
struct Heads {
  std::byte* data;
  int64_t heads, length, bytes;  // of a row
  std::byte* row(int64_t head, int64_t row) const { return data + (head * length + row) * bytes; }
  /// So many rows into heads that lie beside each other.
  void put(int64_t head, int64_t first, int64_t rows, const std::byte* from) const {
    for (int64_t i = 0; i < rows; ++i)
      std::memcpy(data + ((head / heads * length + first + i) * heads + head % heads) * bytes, from + i * bytes,
                  static_cast<size_t>(bytes));
  }
};

Operand memory(void* data) {
  Operand out;
  out.data = data;
  return out;
}

// Neighbours in a row are neighbours in memory, or one and the same.
bool has_rows(const Steps& s, const ir::Shape&) { return s.of.back().is(0) || s.of.back().is(1); }

// What has an element for each score, in a run, or for several of them: the mask, and its gradient.
struct OfScores {
  std::byte* data = nullptr;
  int64_t heads, batch, head, row, key, bytes;  // steps of elements, and how large they are
  std::byte* block(int64_t of_head, int64_t at_row, int64_t at_key) const {
    return data + (of_head / heads * batch + of_head % heads * head + at_row * row + at_key * key) * bytes;
  }
};

Readable readable(const ir::Args& args, size_t i) {
  return i == ops::AttentionNode(args).mask ? has_rows : is_contiguous;
}

void place(ir::Args& args, const ir::Graph& graph, std::unordered_set<Value>& in_memory) {
  for (size_t i = 0; i < args.size(); ++i)
    if (args[i].is<Value>()) args[i] = placed(args[i].get<Value>(), false, readable(args, i), graph, in_memory);
}

bool reads(const Node& n, const Stored& stored) {
  for (size_t i = 0; i < n.args.size(); ++i)
    if (n.args[i].is<Value>() && !reads_in_place(stored, n.arg<Value>(i), readable(n.args, i))) return false;
  return true;
}

// Wide floats that blocks are added to: some tensors of equal length.
class Sums {
 public:
  Sums(DType dtype, int64_t length, int64_t count = 1)
      : dtype_(dtype), bytes_(length * size_of(dtype)), memory_(static_cast<size_t>(bytes_ * count)) {}
  std::byte* at(int64_t i, int64_t element = 0) { return memory_.data() + i * bytes_ + element * size_of(dtype_); }
  void fill(double with) {
    visit(memory_.data(), memory_.size(),
          [&](auto* x, size_t n) { std::fill_n(x, n, static_cast<std::remove_pointer_t<decltype(x)>>(with)); });
  }
  void add(Sums& other) { add(other.memory_.data(), memory_.data(), memory_.size()); }
  /// So many elements of tensor `i` to wide floats elsewhere.
  void add_to(std::byte* sums, int64_t i, int64_t count) {
    add(at(i), sums, static_cast<size_t>(count * size_of(dtype_)));
  }

 private:
  void add(std::byte* from, std::byte* to, size_t bytes) const {
    visit(to, bytes, [&](auto* x, size_t n) {
      auto* y = reinterpret_cast<decltype(x)>(from);
      for (size_t i = 0; i < n; ++i) x[i] += y[i];
    });
  }
  template <class F>
  void visit(std::byte* data, size_t bytes, F f) const {
    if (dtype_ == DType::Float64)
      f(reinterpret_cast<double*>(data), bytes / sizeof(double));
    else
      f(reinterpret_cast<float*>(data), bytes / sizeof(float));
  }

  DType dtype_;
  int64_t bytes_;
  Scratch<std::byte> memory_;
};

// An element of a mask that leaves nothing: -infinity, or false, whose byte is 0 where any other is true.
std::array<std::byte, 8> nothing_as(DType mask) {
  std::array<std::byte, 8> out{};
  auto put = [&](auto number) { std::memcpy(out.data(), &number, sizeof number); };
  constexpr double none = -std::numeric_limits<double>::infinity();
  if (mask == DType::Float64) put(none);
  if (mask == DType::Float32) put(static_cast<float>(none));
  if (is_reduced_floating(mask)) put(narrow_bits(mask, none));
  return out;
}

class BlockedCall : public DeviceCall {
 public:
  const Report* report() const override { return report_of(*whole_); }

 protected:
  using Make = std::unique_ptr<ir::Graph> (*)(const ops::AttentionBlock& block, ir::Facts& facts);

  BlockedCall(const Group& g, const CompilerOptions& given, Make make) : options_(given) {
    const Node& n = *g.graph->outputs()[0].value.node;
    ops::AttentionNode call(n.args);
    const ir::Shape &query = type_of(n.arg<Value>(call.query)).shape,
                    &key = type_of(n.arg<Value>(call.query + 1)).shape;
    for (size_t i = 0; i < call.mask; ++i) operands_.emplace_back(source_of(g, n.arg<Value>(i), is_contiguous));
    if (!n.args[call.mask].is_none()) {
      mask_.emplace(source_of(g, n.arg<Value>(call.mask), has_rows));
      nothing_ = nothing_as(mask_->dtype);
    }
    if (!n.args[call.random].is_none()) random_.emplace(source_of(g, n.arg<Value>(call.random), is_contiguous));
    dropout_ = call.dropout;
    summed_ = call.summed;
    results_ = g.inputs.size();
    dtype_ = type_of(n.arg<Value>(call.query)).dtype;
    wide_ = ops::opmath(dtype_);
    features_ = query[3].constant();
    causal_ = call.causal;
    scale_ = n.arg<double>(call.scale);
    batches_ = SizeProgram(query[0]);
    heads_ = SizeProgram(query[1]);
    rows_ = SizeProgram(query[2]);
    keys_ = SizeProgram(key[2]);
    options_.threads = 1;  // blocks run side by side
    options_.keep_launches = options_.size_classes = false;
    options_.lasting.clear();
    whole_ = compiled(make, kMostRows, kMostKeys);
    if (random_) kept_ = compiled(ops::attention_kept, Expr::size(kRows), Expr::size(kKeys));
    bool even = query[2].is_constant() && key[2].is_constant() && query[2].constant() % kMostRows == 0 &&
                key[2].constant() % kMostKeys == 0;
    if (causal_)
      part_ = compiled(make, Expr::size(kRows), Expr::size(kKeys), Expr::size(kFirst) - kMostRows);
    else if (!even)
      part_ = compiled(make, Expr::size(kRows), Expr::size(kKeys));
  }

  std::shared_ptr<Executable> compiled(Make make, Expr rows, Expr keys, std::optional<Expr> diagonal = {}) const {
    ir::Facts facts({kMostRows, kMostKeys, kMostRows, kMostKeys, kMostKeys, kMostKeys});
    ops::AttentionBlock block{dtype_, features_, scale_, rows, keys, diagonal};
    if (mask_) block.mask = {mask_->dtype, Expr::size(kMaskRow), mask_->steps[3].constant()};
    if (random_) block.dropout = {dropout_, Expr::size(kScores)};
    if (summed_) block.mask_sum = {sums_over(2), sums_over(3), Expr::size(kSumRow)};
    std::unique_ptr<ir::Graph> graph = make(block, facts);
    graph->name = "block";
    std::shared_ptr<Executable> out = run_pipeline(*graph, facts, options_);
    BRASA_ASSERT(facts.facts().empty(), "a block of attention was made for some sizes");
    return out;
  }

  struct Sizes {
    int64_t batches, heads, rows, keys;
    int64_t blocks() const { return (rows + kMostRows - 1) / kMostRows; }
  };
  Sizes sizes(const int64_t* symbols) const {
    return {batches_(symbols), heads_(symbols), rows_(symbols), keys_(symbols)};
  }
  struct Block {
    int64_t row, rows, key, keys;
  };
  /// Calls `f` for the blocks of these rows that are not behind the diagonal, in the order of their keys.
  template <class F>
  void for_each_block(const Sizes& s, int64_t row, F f) const {
    int64_t rows = std::min(kMostRows, s.rows - row), keys = causal_ ? std::min(s.keys, row + rows) : s.keys;
    for (int64_t key = 0; key < keys; key += kMostKeys) f(Block{row, rows, key, std::min(kMostKeys, keys - key)});
  }
  /// What scores have beside queries and keys.
  struct Scores {
    OfScores mask;
    const int64_t* random;  // the key of dropout
    int64_t rows, keys;
  };
  Scores scores(const Sizes& s, void* const* tensors, const int64_t* symbols) const {
    OfScores mask;
    if (mask_) {
      auto step = [&](size_t d) { return mask_->steps[d](symbols); };
      mask = {mask_->data(tensors, symbols), s.heads, step(0), step(1), step(2), step(3), size_of(mask_->dtype)};
    }
    const auto* random = random_ ? reinterpret_cast<const int64_t*>(random_->data(tensors, symbols)) : nullptr;
    return {mask, random, s.rows, s.keys};
  }
  /// What dropout keeps of some rows of scores, a byte each.
  class Kept {
   public:
    Kept(const BlockedCall& call, const Scores& of) : call_(call), of_(of) {}
    void draw(int64_t head, int64_t row, int64_t rows) {
      if (!of_.random) return;
      first_ = (head * of_.rows + row) * of_.keys % ops::kWordsTogether;
      int64_t key[] = {of_.random[0], of_.random[1] + (head * of_.rows + row) * of_.keys - first_};
      const Symbols sizes = {first_ + rows * of_.keys};
      bytes_.resize(static_cast<size_t>(sizes[kRows]));
      const Operand in[] = {memory(key)}, out[] = {memory(bytes_.data())};
      call_.kept_->run(sizes.data(), in, out);
    }
    std::byte* from(int64_t key) { return of_.random ? bytes_.data() + first_ + key : nullptr; }

   private:
    const BlockedCall& call_;
    const Scores& of_;
    int64_t first_ = 0;
    Scratch<std::byte> bytes_;
  };
  /// The mask, and what dropout keeps, are operands behind the first so many. A block of which the mask leaves nothing is not computed.
  void run_block(const Block& b, int64_t head, const Scores& of, std::byte* kept, std::initializer_list<void*> first,
                 std::initializer_list<void*> others, int64_t sum_row = 0) const {
    SmallVector<Operand, 16> in;
    auto add = [&](void* data) {
      if (data) in.push_back(memory(data));
    };
    std::for_each(first.begin(), first.end(), add);
    if (of.mask.data) {
      if (leaves_nothing(b, head, of.mask)) return;
      add(of.mask.block(head, b.row, b.key));
    }
    add(kept);
    std::for_each(others.begin(), others.end(), add);
    bool all = b.rows == kMostRows && b.keys == kMostKeys && (!causal_ || b.key + b.keys <= b.row + 1);
    const Symbols symbols = {b.rows, b.keys, b.row - b.key + kMostRows, of.mask.row, sum_row, of.keys};
    (all ? whole_ : part_)->run(symbols.data(), {in.data(), in.size()}, {});
  }
  bool leaves_nothing(const Block& b, int64_t head, const OfScores& mask) const {
    auto others = static_cast<size_t>(mask.key ? (b.keys - 1) * mask.bytes : 0);
    for (int64_t i = 0; i < (mask.row ? b.rows : 1); ++i) {
      const std::byte* row = mask.block(head, b.row + i, b.key);
      if (std::memcmp(row, nothing_.data(), static_cast<size_t>(mask.bytes)) != 0) return false;
      if (std::memcmp(row, row + mask.bytes, others) != 0) return false;
    }
    return true;
  }
  Heads at(void* data, const Sizes& s, int64_t length) const {
    return {static_cast<std::byte*>(data), s.heads, length, features_ * size_of(dtype_)};
  }
  double products(const int64_t* symbols) const override {
    Sizes s = sizes(symbols);
    int64_t scores = 0;
    for (int64_t i = 0; i < s.blocks(); ++i)
      for_each_block(s, i * kMostRows, [&](const Block& b) { scores += b.rows * b.keys; });
    return static_cast<double>(scores * s.batches * s.heads * features_ * count_of_products_);
  }

  std::vector<Located> operands_;
  std::optional<Located> mask_;
  std::array<std::byte, 8> nothing_{};
  std::optional<Located> random_;
  double dropout_;
  std::optional<std::vector<int64_t>> summed_;  // over which dimensions the mask's gradient is, if it is asked for
  bool sums_over(int64_t dim) const { return std::count(summed_->begin(), summed_->end(), dim) > 0; }
  size_t results_;
  DType dtype_, wide_;
  int64_t features_;
  bool causal_;
  double scale_;
  int64_t count_of_products_ = 2;

 private:
  SizeProgram batches_, heads_, rows_, keys_;
  CompilerOptions options_;
  // Blocks of most rows and keys without a diagonal, all others, and what dropout keeps.
  std::shared_ptr<Executable> whole_, part_, kept_;
};

class AttentionCall final : public BlockedCall {
 public:
  AttentionCall(const Group& g, const CompilerOptions& options)
      : BlockedCall(g, options, ops::attention_block),
        end_(compiled(ops::attention_end, Expr::size(kRows), Expr::size(kKeys))) {}

  void run(runtime::Device&, runtime::Stream, void* const* tensors, const int64_t* symbols) const override {
    Sizes s = sizes(symbols);
    Scores scores = this->scores(s, tensors, symbols);
    auto operand = [&](size_t i) { return operands_[i].data(tensors, symbols); };
    Heads query = at(operand(0), s, s.rows), key = at(operand(1), s, s.keys), value = at(operand(2), s, s.keys),
          out = at(tensors[results_], s, s.rows);
    auto* log_sum = static_cast<std::byte*>(tensors[results_ + 1]);
    runtime::parallel_for(s.batches * s.heads * s.blocks(), 1, [&](int64_t begin, int64_t end) {
      Kept kept(*this, scores);
      Sums most(wide_, kMostRows), total(wide_, kMostRows), sums(wide_, kMostRows * features_);
      Scratch<std::byte> rows(static_cast<size_t>(kMostRows * out.bytes));
      for (int64_t i = begin; i < end; ++i) {
        int64_t head = i / s.blocks(), row = i % s.blocks() * kMostRows, count = std::min(kMostRows, s.rows - row);
        most.fill(-std::numeric_limits<double>::infinity());
        total.fill(0);
        sums.fill(0);
        kept.draw(head, row, count);
        const Operand state[] = {memory(most.at(0)), memory(total.at(0)), memory(sums.at(0))};
        for_each_block(s, row, [&](const Block& b) {
          run_block(b, head, scores, kept.from(b.key),
                    {query.row(head, b.row), key.row(head, b.key), value.row(head, b.key)},
                    {most.at(0), total.at(0), sums.at(0)});
        });
        const Symbols sizes_of_end = {count};
        const Operand to[] = {memory(rows.data()), memory(log_sum + (head * s.rows + row) * size_of(wide_))};
        end_->run(sizes_of_end.data(), state, to);
        out.put(head, row, count, rows.data());
      }
    });
  }

 private:
  std::shared_ptr<Executable> end_;
};

class AttentionBackwardCall final : public BlockedCall {
 public:
  AttentionBackwardCall(const Group& g, const CompilerOptions& options)
      : BlockedCall(g, options, ops::attention_block_backward) {
    count_of_products_ = 5;
    if (dtype_ != wide_) end_ = compiled(ops::attention_backward_end, Expr::size(kRows), Expr::size(kKeys));
  }

  void run(runtime::Device&, runtime::Stream, void* const* tensors, const int64_t* symbols) const override {
    Sizes s = sizes(symbols);
    Scores scores = this->scores(s, tensors, symbols);
    auto operand = [&](size_t i) { return operands_[i].data(tensors, symbols); };
    auto result = [&](size_t i, int64_t length) { return at(tensors[results_ + i], s, length); };
    Heads ct = at(operand(0), s, s.rows), query = at(operand(1), s, s.rows), key = at(operand(2), s, s.keys),
          value = at(operand(3), s, s.keys), out = at(operand(4), s, s.rows);
    auto* log_sum = static_cast<std::byte*>(operand(5));
    OfScores by_mask = mask_sums(s, tensors);
    // Heads that add to the same places of the mask's gradient take turns.
    int64_t over_batches = by_mask.data && by_mask.batch == 0 ? s.batches : 1,
            over_heads = by_mask.data && by_mask.head == 0 ? s.heads : 1, turns = over_batches * over_heads,
            heads = turns ? s.batches * s.heads / turns : 0;
    auto head_at = [&](int64_t turn, int64_t i) {
      int64_t batch = over_batches > 1 ? turn / over_heads : over_heads > 1 ? i : i / s.heads;
      return batch * s.heads + (over_heads > 1 ? turn % over_heads : i % s.heads);
    };
    // Few heads are divided, row by row in turn, as the last rows of a causal one have the most to do. Threads have no part in it, so that
    // sums stay the same.
    int64_t each = s.keys * features_,
            parts = std::clamp<int64_t>(kLeastTasks / std::max<int64_t>(heads, 1), 1, s.blocks());
    bool sums_rows = summed_ && sums_over(2);
    // Of keys and values, and of the mask's gradient where it has no rows.
    auto new_sums = [&] { return Sums(wide_, each, sums_rows ? 3 : 2); };
    auto add_rows = [&](Sums& sums, int64_t head, int64_t part) {
      sums.fill(0);
      Sums rows(wide_, kMostRows * features_);
      Kept kept(*this, scores);
      for (int64_t row = part * kMostRows; row < s.rows; row += parts * kMostRows) {
        rows.fill(0);
        kept.draw(head, row, std::min(kMostRows, s.rows - row));
        for_each_block(s, row, [&](const Block& b) {
          std::byte* to_mask = sums_rows      ? sums.at(2, b.key * by_mask.key)
                               : by_mask.data ? by_mask.block(head, b.row, b.key)
                                              : nullptr;
          run_block(b, head, scores, kept.from(b.key),
                    {ct.row(head, b.row), query.row(head, b.row), key.row(head, b.key), value.row(head, b.key)},
                    {out.row(head, b.row), log_sum + (head * s.rows + b.row) * size_of(wide_), rows.at(0),
                     sums.at(0, b.key * features_), sums.at(1, b.key * features_), to_mask},
                    by_mask.row);
        });
        put(rows.at(0), std::min(kMostRows, s.rows - row), result(0, s.rows), head, row);
      }
    };
    auto put_keys = [&](Sums& sums, int64_t head) {
      for (size_t i : {0, 1}) put(sums.at(static_cast<int64_t>(i)), s.keys, result(i + 1, s.keys), head, 0);
      if (sums_rows) sums.add_to(by_mask.block(head, 0, 0), 2, by_mask.key ? s.keys : 1);
    };
    std::vector<Sums> divided;
    if (parts > 1) divided.assign(static_cast<size_t>(heads * parts), new_sums());
    for (int64_t turn = 0; turn < turns; ++turn) {
      runtime::parallel_for(heads * parts, 1, [&](int64_t begin, int64_t end) {
        std::optional<Sums> own;
        if (parts == 1) own.emplace(new_sums());
        for (int64_t i = begin; i < end; ++i) {
          int64_t head = head_at(turn, i / parts);
          add_rows(own ? *own : divided[static_cast<size_t>(i)], head, i % parts);
          if (own) put_keys(*own, head);
        }
      });
      if (parts == 1) continue;
      runtime::parallel_for(heads, 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          Sums& sums = divided[static_cast<size_t>(i * parts)];
          for (int64_t part = 1; part < parts; ++part) sums.add(divided[static_cast<size_t>(i * parts + part)]);
          put_keys(sums, head_at(turn, i));
        }
      });
    }
  }

 private:
  // As the results' dtype, heads beside each other.
  void put(std::byte* sums, int64_t count, const Heads& to, int64_t head, int64_t row) const {
    if (!end_) return to.put(head, row, count, sums);
    Scratch<std::byte> rows(static_cast<size_t>(count * to.bytes));
    const Symbols sizes = {count};
    const Operand in[] = {memory(sums)}, out[] = {memory(rows.data())};
    end_->run(sizes.data(), in, out);
    to.put(head, row, count, rows.data());
  }

  // Where the mask's gradient is summed up, full of zeros; no data if nothing asks for it.
  OfScores mask_sums(const Sizes& s, void* const* tensors) const {
    if (!summed_) return {nullptr, s.heads, 0, 0, 0, 0, 0};
    const int64_t sizes[] = {s.batches, s.heads, s.rows, s.keys};
    std::array<int64_t, 4> steps{};
    int64_t count = 1;
    for (size_t d = 4; d-- > 0;) {
      if (sums_over(static_cast<int64_t>(d))) continue;
      steps[d] = count;
      count *= sizes[d];
    }
    auto* data = static_cast<std::byte*>(tensors[results_ + 3]);
    std::memset(data, 0, static_cast<size_t>(count * size_of(wide_)));
    return {data, s.heads, steps[0], steps[1], steps[2], steps[3], size_of(wide_)};
  }

  std::shared_ptr<Executable> end_;  // null where sums have the results' dtype
};

bool takes(const Node& n) {
  ops::AttentionNode call(n.args);
  const ir::Type &query = type_of(n.arg<Value>(call.query)), &key = type_of(n.arg<Value>(call.query + 1));
  for (size_t i = 0; i < call.query + 3; ++i)
    if (type_of(n.arg<Value>(i)).dtype != query.dtype) return false;
  int64_t least = ops::long_attention(call.causal);
  auto is_long = [&](Expr length) { return !length.is_constant() || length.constant() >= least; };
  return query.shape[3].is_constant() && query.shape[3].constant() > 0 && is_long(query.shape[2]) &&
         is_long(key.shape[2]);
}

template <class Call>
std::unique_ptr<DeviceCall> prepare(const Group& g, const CompilerOptions& options, ir::Facts&) {
  return std::make_unique<Call>(g, options);
}

template <class Call>
constexpr Implementation blocked(std::string_view primitive) {
  return {.library = "attention_blocks",
          .name = "attention in blocks",
          .primitive = primitive,
          .supports = takes,
          .prepare = prepare<Call>,
          .place = place,
          .reads = reads};
}

}  // namespace

const Implementation kBlockedAttention = blocked<AttentionCall>("prim::attention");
const Implementation kBlockedAttentionBackward = blocked<AttentionBackwardCall>("prim::attention_backward");

}  // namespace brasa::compiler
