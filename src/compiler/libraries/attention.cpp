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
#include "runtime/thread_pool.h"
#include "support/error.h"
#include "support/half.h"
#include "support/small_vector.h"

// Attention of long sequences on the host, block by block: some queries of a head and some of its keys, whose scores stay in a thread's
// cache, so that there is never a matrix of all of them (Dao et al. 2022). Blocks behind the diagonal of a causal one are left out. What a
// block computes is a compiled graph.
namespace brasa::compiler {
namespace {

// The symbols of a block's graph: kFirst is how many keys the first row attends to, and kMostRows more; kMaskRow how many elements are
// from a row of the mask to the next.
enum : uint32_t { kRows, kKeys, kFirst, kMaskRow };
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

// The mask's elements in a run.
struct Mask {
  const std::byte* data = nullptr;
  int64_t heads, batch, head, row, key, bytes;  // steps of elements, and how large they are
  std::byte* block(int64_t of_head, int64_t at_row, int64_t at_key) const {
    return const_cast<std::byte*>(data) +
           (of_head / heads * batch + of_head % heads * head + at_row * row + at_key * key) * bytes;
  }
};

bool is_causal(const Node& n) { return n.args[n.args.size() - 2].get<bool>(); }
size_t mask_at(const ir::Args& args) { return args.size() - 3; }

Readable readable(const ir::Args& args, size_t i) { return i == mask_at(args) ? has_rows : is_contiguous; }

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
    visit([&](auto* x, size_t n) { std::fill_n(x, n, static_cast<std::remove_pointer_t<decltype(x)>>(with)); });
  }
  void add(Sums& other) {
    visit([&](auto* x, size_t n) {
      const auto* y = reinterpret_cast<decltype(x)>(other.memory_.data());
      for (size_t i = 0; i < n; ++i) x[i] += y[i];
    });
  }

 private:
  template <class F>
  void visit(F f) {
    if (dtype_ == DType::Float64)
      f(reinterpret_cast<double*>(memory_.data()), memory_.size() / sizeof(double));
    else
      f(reinterpret_cast<float*>(memory_.data()), memory_.size() / sizeof(float));
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

  BlockedCall(const Group& g, size_t first, const CompilerOptions& given, Make make) : options_(given) {
    const Node& n = *g.graph->outputs()[0].value.node;
    const ir::Shape &query = type_of(n.arg<Value>(first)).shape, &key = type_of(n.arg<Value>(first + 1)).shape;
    for (size_t i = 0; i < mask_at(n.args); ++i) operands_.emplace_back(source_of(g, n.arg<Value>(i), is_contiguous));
    if (!n.args[mask_at(n.args)].is_none()) {
      mask_.emplace(source_of(g, n.arg<Value>(mask_at(n.args)), has_rows));
      nothing_ = nothing_as(mask_->dtype);
    }
    results_ = g.inputs.size();
    dtype_ = type_of(n.arg<Value>(first)).dtype;
    wide_ = ops::opmath(dtype_);
    features_ = query[3].constant();
    causal_ = is_causal(n);
    scale_ = n.args.back().get<double>();
    batches_ = SizeProgram(query[0]);
    heads_ = SizeProgram(query[1]);
    rows_ = SizeProgram(query[2]);
    keys_ = SizeProgram(key[2]);
    options_.threads = 1;  // blocks run side by side
    options_.keep_launches = options_.size_classes = false;
    options_.lasting.clear();
    whole_ = compiled(make, kMostRows, kMostKeys);
    bool even = query[2].is_constant() && key[2].is_constant() && query[2].constant() % kMostRows == 0 &&
                key[2].constant() % kMostKeys == 0;
    if (causal_)
      part_ = compiled(make, Expr::size(kRows), Expr::size(kKeys), Expr::size(kFirst) - kMostRows);
    else if (!even)
      part_ = compiled(make, Expr::size(kRows), Expr::size(kKeys));
  }

  std::shared_ptr<Executable> compiled(Make make, Expr rows, Expr keys, std::optional<Expr> diagonal = {}) const {
    ir::Facts facts({kMostRows, kMostKeys, kMostRows, kMostKeys});
    std::optional<ops::AttentionBlock::Mask> mask;
    if (mask_) mask = {mask_->dtype, Expr::size(kMaskRow), mask_->steps[3].constant()};
    std::unique_ptr<ir::Graph> graph = make({dtype_, features_, scale_, rows, keys, diagonal, mask}, facts);
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
  /// The mask is an operand behind the first so many. A block of which it leaves nothing is not computed.
  void run_block(const Block& b, int64_t head, const Mask& mask, std::initializer_list<void*> first,
                 std::initializer_list<void*> others) const {
    SmallVector<Operand, 16> in;
    for (void* data : first) in.push_back(memory(data));
    if (mask.data) {
      if (leaves_nothing(b, head, mask)) return;
      in.push_back(memory(mask.block(head, b.row, b.key)));
    }
    for (void* data : others) in.push_back(memory(data));
    bool all = b.rows == kMostRows && b.keys == kMostKeys && (!causal_ || b.key + b.keys <= b.row + 1);
    const int64_t symbols[] = {b.rows, b.keys, b.row - b.key + kMostRows, mask.row};
    (all ? whole_ : part_)->run(symbols, {in.data(), in.size()}, {});
  }
  bool leaves_nothing(const Block& b, int64_t head, const Mask& mask) const {
    auto others = static_cast<size_t>(mask.key ? (b.keys - 1) * mask.bytes : 0);
    for (int64_t i = 0; i < (mask.row ? b.rows : 1); ++i) {
      const std::byte* row = mask.block(head, b.row + i, b.key);
      if (std::memcmp(row, nothing_.data(), static_cast<size_t>(mask.bytes)) != 0) return false;
      if (std::memcmp(row, row + mask.bytes, others) != 0) return false;
    }
    return true;
  }
  Mask mask(const Sizes& s, void* const* tensors, const int64_t* symbols) const {
    if (!mask_) return {};
    auto step = [&](size_t d) { return mask_->steps[d](symbols); };
    return {mask_->data(tensors, symbols), s.heads, step(0), step(1), step(2), step(3), size_of(mask_->dtype)};
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
  size_t results_;
  DType dtype_, wide_;
  int64_t features_;
  bool causal_;
  double scale_;
  int64_t count_of_products_ = 2;

 private:
  SizeProgram batches_, heads_, rows_, keys_;
  CompilerOptions options_;
  std::shared_ptr<Executable> whole_, part_;  // blocks of most rows and keys without a diagonal, and all others
};

class AttentionCall final : public BlockedCall {
 public:
  AttentionCall(const Group& g, const CompilerOptions& options)
      : BlockedCall(g, 0, options, ops::attention_block),
        end_(compiled(ops::attention_end, Expr::size(kRows), Expr::size(kKeys))) {}

  void run(runtime::Device&, runtime::Stream, void* const* tensors, const int64_t* symbols) const override {
    Sizes s = sizes(symbols);
    Mask mask = this->mask(s, tensors, symbols);
    auto operand = [&](size_t i) { return operands_[i].data(tensors, symbols); };
    Heads query = at(operand(0), s, s.rows), key = at(operand(1), s, s.keys), value = at(operand(2), s, s.keys),
          out = at(tensors[results_], s, s.rows);
    auto* log_sum = static_cast<std::byte*>(tensors[results_ + 1]);
    runtime::parallel_for(s.batches * s.heads * s.blocks(), 1, [&](int64_t begin, int64_t end) {
      Sums most(wide_, kMostRows), total(wide_, kMostRows), sums(wide_, kMostRows * features_);
      Scratch<std::byte> rows(static_cast<size_t>(kMostRows * out.bytes));
      for (int64_t i = begin; i < end; ++i) {
        int64_t head = i / s.blocks(), row = i % s.blocks() * kMostRows, count = std::min(kMostRows, s.rows - row);
        most.fill(-std::numeric_limits<double>::infinity());
        total.fill(0);
        sums.fill(0);
        const Operand state[] = {memory(most.at(0)), memory(total.at(0)), memory(sums.at(0))};
        for_each_block(s, row, [&](const Block& b) {
          run_block(b, head, mask, {query.row(head, b.row), key.row(head, b.key), value.row(head, b.key)},
                    {most.at(0), total.at(0), sums.at(0)});
        });
        const int64_t sizes_of_end[] = {count, 0, 0, 0};
        const Operand to[] = {memory(rows.data()), memory(log_sum + (head * s.rows + row) * size_of(wide_))};
        end_->run(sizes_of_end, state, to);
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
      : BlockedCall(g, 1, options, ops::attention_block_backward) {
    count_of_products_ = 5;
    if (dtype_ != wide_) end_ = compiled(ops::attention_backward_end, Expr::size(kRows), Expr::size(kKeys));
  }

  void run(runtime::Device&, runtime::Stream, void* const* tensors, const int64_t* symbols) const override {
    Sizes s = sizes(symbols);
    Mask mask = this->mask(s, tensors, symbols);
    auto operand = [&](size_t i) { return operands_[i].data(tensors, symbols); };
    auto result = [&](size_t i, int64_t length) { return at(tensors[results_ + i], s, length); };
    Heads ct = at(operand(0), s, s.rows), query = at(operand(1), s, s.rows), key = at(operand(2), s, s.keys),
          value = at(operand(3), s, s.keys), out = at(operand(4), s, s.rows);
    auto* log_sum = static_cast<std::byte*>(operand(5));
    // Few heads are divided, row by row in turn, as the last rows of a causal one have the most to do. Threads have no part in it, so that
    // sums stay the same.
    int64_t heads = s.batches * s.heads, each = s.keys * features_,
            parts = std::clamp<int64_t>(kLeastTasks / std::max<int64_t>(heads, 1), 1, s.blocks());
    auto add_rows = [&](Sums& sums, int64_t head, int64_t part) {
      sums.fill(0);
      Sums rows(wide_, kMostRows * features_);
      for (int64_t row = part * kMostRows; row < s.rows; row += parts * kMostRows) {
        rows.fill(0);
        for_each_block(s, row, [&](const Block& b) {
          run_block(b, head, mask,
                    {ct.row(head, b.row), query.row(head, b.row), key.row(head, b.key), value.row(head, b.key)},
                    {out.row(head, b.row), log_sum + (head * s.rows + b.row) * size_of(wide_), rows.at(0),
                     sums.at(0, b.key * features_), sums.at(1, b.key * features_)});
        });
        put(rows.at(0), std::min(kMostRows, s.rows - row), result(0, s.rows), head, row);
      }
    };
    auto put_keys = [&](Sums& sums, int64_t head) {
      for (size_t i : {0, 1}) put(sums.at(static_cast<int64_t>(i)), s.keys, result(i + 1, s.keys), head, 0);
    };
    std::vector<Sums> divided;
    if (parts > 1) divided.assign(static_cast<size_t>(heads * parts), Sums(wide_, each, 2));
    runtime::parallel_for(heads * parts, 1, [&](int64_t begin, int64_t end) {
      std::optional<Sums> own;
      if (parts == 1) own.emplace(wide_, each, 2);
      for (int64_t i = begin; i < end; ++i) {
        add_rows(own ? *own : divided[static_cast<size_t>(i)], i / parts, i % parts);
        if (own) put_keys(*own, i);
      }
    });
    if (parts == 1) return;
    runtime::parallel_for(heads, 1, [&](int64_t begin, int64_t end) {
      for (int64_t head = begin; head < end; ++head) {
        Sums& sums = divided[static_cast<size_t>(head * parts)];
        for (int64_t part = 1; part < parts; ++part) sums.add(divided[static_cast<size_t>(head * parts + part)]);
        put_keys(sums, head);
      }
    });
  }

 private:
  // As the results' dtype, heads beside each other.
  void put(std::byte* sums, int64_t count, const Heads& to, int64_t head, int64_t row) const {
    if (!end_) return to.put(head, row, count, sums);
    Scratch<std::byte> rows(static_cast<size_t>(count * to.bytes));
    const int64_t sizes[] = {count, 0, 0, 0};
    const Operand in[] = {memory(sums)}, out[] = {memory(rows.data())};
    end_->run(sizes, in, out);
    to.put(head, row, count, rows.data());
  }

  std::shared_ptr<Executable> end_;  // null where sums have the results' dtype
};

bool takes(const Node& n) {
  size_t first = n.types.size() == 3 ? 1 : 0;
  const ir::Type &query = type_of(n.arg<Value>(first)), &key = type_of(n.arg<Value>(first + 1));
  for (size_t i = 0; i < first + 3; ++i)
    if (type_of(n.arg<Value>(i)).dtype != query.dtype) return false;
  int64_t least = ops::long_attention(is_causal(n));
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
