#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "compiler/loops/branches.h"
#include "compiler/loops/layout.h"
#include "compiler/loops/linearize.h"
#include "compiler/loops/math.h"
#include "compiler/targets/target.h"

namespace brasa::compiler {

using ops::ScalarOp;

/// Whether a place depends on what is read elsewhere.
bool reads_values(ir::Expr place);

/// Turns one loop graph into an LLVM function. Walks the nest; computes pure nodes where they are needed, once in each
/// block for each combination of the unroll indices and vector copies that they depend on.
class Emitter {
 public:
  Emitter(llvm::Module& module, const Target& target, const ExpandedMath& kernel);
  /// A kernel.
  void run();
  /// What the kernel stores, as a function of its numbers and of so many lanes, for other kernels of the module.
  llvm::Function* run_as_function(const std::string& name, int lanes);

 private:
  using Values = std::vector<llvm::Value*>;
  using ExprValues = std::unordered_map<ir::Expr, llvm::Value*>;

  // Emitted values that are valid in one block of the nest and inside it.
  struct Frame {
    std::unordered_map<const ir::Node*, Values> values;  // by combination * results + result
    ExprValues exprs;
  };

  // The vector loop around the current place. `copies` vectors of `lanes` lanes are computed side by side; lane i of
  // copy c has the loop index start + first + c * lanes + i.
  struct VectorState {
    int loop = -1;
    int lanes = 1, copies = 1, copy = 0;
    llvm::Value* start = nullptr;
    int64_t first = 0;                   // of a vector that is left of a step of several copies
    llvm::Value* mask = nullptr;         // <lanes x i1>, null for all
    llvm::Value* whole = nullptr;        // whether the mask is all, where it may be and may not be
    ir::Expr symbol;                     // stands for `start` in expressions, with its known multiple
    ir::Expr lane;                       // stands for the lane number
    llvm::Value* accumulator = nullptr;  // baseline code: which of a sum's the optimized code would add this element to
  };

  struct Accumulators {
    Values vectors;  // by combination [* copies]: allocas
    Values scalars;  // by combination: for iterations that run lane by lane; empty if there are none
    int copies = 1;  // > 1 only where a vector loop is closed
    bool closes_vector = false;
    bool by_element = false;  // baseline code: `vectors` are arrays of scalars, those of `scalars` at their ends
    int lanes = 1;            // then: of a vector
  };

  // An index as seen by the lanes: base + stride * lane, or base + offsets[lane], or a vector of any indices.
  struct LaneIndex {
    bool linear = true;
    ir::Expr base, stride;
    std::vector<int64_t> offsets;  // the least of them is 0; none where the index is linear, or they are not known
    ir::Expr whole;
    int64_t span() const { return 1 + *std::max_element(offsets.begin(), offsets.end()); }
  };

  struct BufferRef {
    llvm::Value* base;
    DType dtype;
  };

  // emitter.cpp: structure
  void set_up_function();
  void start_function(const std::string& name, llvm::Type* result, llvm::ArrayRef<llvm::Type*> parameters);
  void emit_block(const Block& block);
  void emit_nodes(const Block& block, size_t begin, size_t end);
  bool plain_store(const ir::Node* n) const;
  void emit_loop(const Loop& loop);
  void emit_flat(const Loop& loop);
  void emit_serial(const Loop& loop);
  void emit_iterations(const Loop& loop, ir::Expr count);
  void emit_copies(const Loop& loop, const Values& iterations);
  void divide_before(const Loop& loop);
  void emit_counted(llvm::Value* begin, llvm::Value* end, llvm::Value* step, bool at_least_once,
                    const std::function<void(llvm::Value*)>& body);
  void for_combinations(Ranges ranges, bool copies, const std::function<void()>& f);
  void emit_if(llvm::Value* condition, const std::function<void()>& body);
  void with_frame(const std::function<void()>& f);

  // emit_vector.cpp: vector loops
  void emit_vector(const Loop& loop);
  void emit_steps(const Loop& loop);
  llvm::Value* whole_steps(llvm::Value* count, int64_t width);
  void emit_rest(const Loop& loop, llvm::Value* start, llvm::Value* end, int64_t count);
  void mask_end(llvm::Value* left, bool mostly_whole);
  bool ends_masked(int loop);
  bool ends_overlapped(const Loop& loop, ir::Expr n);
  bool repeats(const Loop& loop);
  bool reads_apart(int loop);
  bool is_long(int loop) const;
  void enter_vector(int loop, int lanes, int copies, llvm::Value* start, int64_t step = 0);
  void emit_vector_part(const Loop& loop, llvm::Value* begin, llvm::Value* end, int lanes, int copies,
                        llvm::Value* mask_limit, int64_t constant_trips, bool mostly_whole = false);

  // emit_borders.cpp: vector loops along which places are compared with bounds
  // A comparison of places: by how much the second one is ahead where the loop's index is 0, and by how much more at each next one.
  struct Border {
    const ir::Node* comparison;
    ir::Expr ahead;
    int64_t step;
    int loop;
  };
  std::vector<Border> borders_of(const Loop& loop) const;
  std::vector<Border> asked_of_tile(const Loop& loop, int copies) const;
  std::vector<Border> asked_of_copies(const Loop& loop) const;
  llvm::Value* holds_throughout(const std::vector<Border>& asked);
  void emit_decided(const std::vector<Border>& asked, const std::function<void()>& where_all,
                    const std::function<void()>& otherwise);
  std::optional<Border> border_at(const ir::Node* comparison, int loop) const;
  std::vector<ir::Expr> parts_of(const std::vector<Border>& borders) const;
  void emit_parts(const std::vector<Border>& borders, const std::vector<ir::Expr>& parts, const Loop& loop,
                  llvm::Value* end);
  void emit_each_part(const std::vector<Border>& borders, const std::vector<ir::Expr>& parts, const Loop& loop,
                      llvm::Value* end);
  bool emit_rows_in_parts(const Loop& loop);
  void in_each_part(const std::vector<Border>& borders, const std::vector<ir::Expr>& parts, llvm::Value* end,
                    const std::function<void(llvm::Value* begin, llvm::Value* end)>& part);
  void emit_part(const Loop& loop, llvm::Value* begin, llvm::Value* end);
  void emit_part(const Loop& loop, llvm::Value* begin, llvm::Value* end, int width, int copies);
  void emit_near_steps(const Loop& loop, const std::vector<Border>& borders, ir::Expr n, llvm::Value* end, bool evenly);
  void emit_even_steps(const Loop& loop, const std::vector<Border>& borders, ir::Expr n, llvm::Value* end);
  void emit_between(const std::vector<Border>& borders, const Loop& loop, llvm::Value* begin, llvm::Value* end,
                    int copies);
  static bool only_stores(const Loop& loop);
  bool stores_and_sums(const Loop& loop) const;
  bool may_repeat(const Loop& loop) const;
  bool goes_evenly(const Loop& loop) const;

  // emit_short_places.cpp: places of lanes in 32 bits
  std::optional<ir::Expr> reach_by_lanes(ir::Expr place, int loop) const;
  llvm::Value* places_are_short(const Loop& loop, std::unordered_set<const ir::Node*>& loads);
  struct ShortPlaces {
    ir::Expr base;
    llvm::Value* behind = nullptr;  // one a lane
  };
  ShortPlaces short_places(ir::Expr place);
  llvm::Value* short_addresses(const BufferRef& p, const ShortPlaces& places);
  llvm::Value* permuted(llvm::Value* low, llvm::Value* high, llvm::Value* places);
  bool shares_places(const ir::Node* load, int loop) const;
  llvm::Value* gather_beside(const ir::Node* load, const BufferRef& p, const ShortPlaces& places, llvm::Value* mask,
                             llvm::Value* common, const std::function<llvm::Value*()>& gather);

  // emit_streams.cpp: stores past the caches
  struct Streamed {
    llvm::Value* at;      // the address of its vector
    int64_t size, bytes;  // of an element, of a vector
  };
  void each_streamable(const Loop& loop, llvm::Value* begin, const std::function<void(const ir::Node*)>& f);
  llvm::Value* streams(const Loop& loop, llvm::Value* begin, llvm::Value* end);
  llvm::Value* streams_lines(const Loop& loop, llvm::Value* end, llvm::Value*& before);
  void emit_lines(const std::vector<Border>& borders, const Loop& loop, llvm::Value* begin, llvm::Value* end);
  bool may_stream(const ir::Node* store) const;
  llvm::Value* is_far(const ir::Node* store);
  llvm::Value* unless_streamed(ir::Value buffer, llvm::Value* at);
  bool decided(const ir::Node* mask) const;
  std::optional<Streamed> streamed(const ir::Node* store);
  llvm::Value* all_of(llvm::Value* before, llvm::Value* condition);
  void end_streams();

  // emit_elements.cpp: baseline code, which runs vector loops element by element
  void emit_elements(const Loop& loop);
  bool depends_on_order(const ir::Node* reduction) const;
  void start_elements(const ir::Node* n, Accumulators& a);
  llvm::Value* accumulator_of_element(const ir::Node* n, const Accumulators& a, size_t place);
  llvm::Value* read_element(const ir::Node* n, llvm::Value* from);
  llvm::Value* fold_elements(const ir::Node* n, const Accumulators& a, size_t place);
  llvm::Value* chosen_of_two(unsigned intrinsic, llvm::ArrayRef<llvm::Value*> args);

  // emit_together.cpp: several vectors side by side
  struct ById {
    bool operator()(const ir::Node* a, const ir::Node* b) const { return a->id < b->id; }
  };
  std::set<const ir::Node*, ById> computed_for(const std::vector<const ir::Node*>& users) const;
  void compute_together(const std::vector<const ir::Node*>& users);
  // emit_fused.cpp: products whose only use is a sum
  const ir::Node* fused_product(ir::Value v, const ir::Node* user, Ranges ranges) const;
  llvm::Value* fused(const ir::Node* product, llvm::Value* sum, bool negative = false);
  llvm::Value* emit_fused(ScalarOp op, const ir::Node* n);
  llvm::Value* fused(llvm::Value* x, llvm::Value* y, llvm::Value* sum);

  // emit_value.cpp: values and the memo
  llvm::Value* eval(ir::Value v);
  Values emit_node(const ir::Node* n);
  llvm::Value* emit_scale(const ir::Node* n);
  llvm::Value* emit_pair_product(const ir::Node* n);
  llvm::Value* integer_pair_product(llvm::Value* a, llvm::Value* b);
  llvm::Value* emit_quad_product(const ir::Node* n);
  llvm::Value* add_quad_product(const ir::Node* n, llvm::Value* sum);
  llvm::Value* any_lane(llvm::Value* condition);
  llvm::Value* emit_unlikely(const ir::Node* n);
  llvm::Value* emit_select(const ir::Node* n);
  llvm::Value* in_branch(ir::Value v, llvm::Value* needed, std::span<const ir::Value> first);
  llvm::Value* call_rare(const ir::Node* n);
  llvm::Value* emit_number(size_t input);
  size_t combination(Ranges ranges, bool vector) const;
  size_t combinations(Ranges ranges, bool vector) const;
  bool in_vector(Ranges r) const { return vector_.loop >= 0 && (r >> vector_.loop & 1); }
  void set_result(const ir::Node* n, const Values& results);

  // emit_index.cpp: expressions
  llvm::Value* eval_expr(ir::Expr e);
  llvm::Value* eval_lanes(ir::Expr e);
  ir::Expr divided_before(ir::Expr place) const;
  ir::Expr of_vectors(ir::Expr place) const;
  /// `known`: what was computed before; the first one grows.
  llvm::Value* eval_any(ir::Expr e, const std::function<llvm::Value*(ir::Expr)>& symbol,
                        std::span<ExprValues* const> known);
  llvm::Value* integer_to_double(llvm::Value* v);
  llvm::Value* double_to_integer(llvm::Value* v);
  llvm::Value* divide_lanes(ir::ExprKind kind, llvm::Value* a, llvm::Value* d);
  ir::Expr at_copy(ir::Expr e);
  const llvm::ConstantInt* known_iteration(int loop) const;
  LaneIndex lane_index(ir::Expr e);
  void find_offsets(LaneIndex& index);
  llvm::Value* behind_base(const LaneIndex& index);
  bool split(ir::Expr e, ir::Expr& base, ir::Expr& stride);
  bool varies(ir::Expr e);
  llvm::Value* compare_indices(ScalarOp op, const ir::Node* n);
  llvm::Value* compare_with_common(ScalarOp op, const ir::Node* n);
  llvm::Value* leaves_rest(ir::Expr remainder, ir::Expr rest);
  llvm::Value* in_32_bits(llvm::Value* index);
  llvm::Value* bound(ir::Expr symbol);
  llvm::Value* extent_of(int loop) { return eval_expr(at_copy(analysis_.loops()[loop].extent())); }

  // emit_memory.cpp
  BufferRef place_of(ir::Value buffer);
  llvm::Value* address(const BufferRef& p, ir::Expr index);
  llvm::Value* zeros();
  using Read = std::function<llvm::Value*(llvm::Value* from, llvm::Value* mask)>;  // null: all lanes
  llvm::Value* load_at_border(const Read& read, llvm::Value* at, llvm::Value* mask, llvm::Value* any);
  llvm::Value* load_mostly_whole(const Read& read, llvm::Value* at, llvm::Value* mask);
  llvm::Value* unless_masked_out(const std::function<llvm::Value*()>& gather, llvm::Value* mask,
                                 llvm::Value* otherwise);
  llvm::Value* address_or_zeros(const BufferRef& p, ir::Expr index, llvm::Value* condition);
  bool few_steps(const LaneIndex& index) const;
  // A vector in memory, from `first` on behind the first lane's element, and where in it the elements of its lanes are; -1 for others.
  struct Neighbours {
    int64_t first;
    std::vector<int> places;
  };
  std::vector<Neighbours> neighbours(int64_t stride) const;
  llvm::Value* spread(llvm::Value* v, const Neighbours& part);
  llvm::Value* load_strided(llvm::Type* type, llvm::Value* at, int64_t stride, llvm::Align align, llvm::Value* mask);
  llvm::Value* emit_load(const ir::Node* n);
  llvm::Value* load_half_of_word(const ir::Node* n, const BufferRef& p, ir::Expr index, llvm::Value* condition);
  llvm::Value* load_chosen(const ir::Node* select);
  llvm::Value* place_chosen(ir::Value v, DType t);
  void emit_store(const ir::Node* n);
  bool store_interleaved(const ir::Node* n);
  void emit_stores(std::span<const ir::Node* const> stores);
  llvm::Align alignment(ir::Value buffer, ir::Expr index);
  void emit_prefetch(const ir::Node* n);
  void store_to(const BufferRef& p, ir::Expr index, llvm::Value* value, llvm::Value* mask, bool streamed = false);
  void combine_to(const BufferRef& p, ir::Expr index, llvm::Value* value, llvm::Value* mask,
                  const std::string& combiner);
  void combine_one(llvm::Value* pointer, DType dtype, llvm::Value* value, const std::string& combiner);
  llvm::Value* addresses(const BufferRef& p, const LaneIndex& index);
  llvm::Value* full_mask(llvm::Value* mask);
  llvm::Value* every_lane(llvm::Value* mask);
  void start_stage(const ir::Node* n);
  void emit_stage_element(const ir::Node* n);
  void emit_whole_stage(const ir::Node* n);
  static ir::Expr place_in_stage(const ir::Node* n);
  llvm::Value* from_memory(llvm::Value* v, DType t);
  llvm::Value* to_memory(llvm::Value* v, DType t);

  // emit_reduce.cpp
  void start_reduce(const ir::Node* n);
  void accumulate(const ir::Node* n);
  void start_scan(const ir::Node* n);
  void emit_scan(const ir::Node* n);
  llvm::Value* add_word_product(const ir::Node* n, llvm::Value* sum);
  llvm::Value* add_pair_product(const ir::Node* product, llvm::Value* sum);
  void finish_reduce(const ir::Node* n);
  void emit_small_reduce(const ir::Node* n);
  Values combine(const std::string& combiner, const Values& a, const Values& b, DType dtype);
  Values later(const std::string& combiner, const Values& a, const Values& b, DType dtype);
  bool comes_in_order(const ir::Node* n) const;
  Values neutral(const ir::Node* n, int lanes);
  Values fold_lanes(const std::string& combiner, const Values& v, DType dtype);
  Values fold_list(const std::string& combiner, std::vector<Values> list, DType dtype);
  Values read_slots(std::span<llvm::Value* const> slots);

  // emit_transposed.cpp
  bool load_transposed(const ir::Node* n);
  bool terms_of_mask(const ir::Node* load, std::vector<ir::Expr>& out);

  // emit_tiles.cpp
  void configure_tiles();
  void release_tiles();
  void emit_tile_product(const ir::Node* n);

  // emit_gpu.cpp
  void set_up_gpu_kernel();
  llvm::Value* number_of_block();
  void start_early();
  std::function<void(llvm::Value* at)> flat_places();
  std::vector<ir::Node*> sure_loads() const;
  std::vector<ir::Node*> readable();
  void read_first();
  int iterations_to_read(int loop, int count);
  std::vector<Values> reduce_threads(const ir::Node* n, std::vector<Values> all);
  std::vector<Values> reduce_far_threads(const ir::Node* n, std::vector<Values> all);
  std::vector<Values> through_shared(const ir::Node* n, int64_t elements, size_t count,
                                     const std::function<void(const Values& to, size_t value)>& write);
  std::vector<size_t> thread_loops() const;
  Values shuffle(const Values& v, int distance);
  void barrier();
  Values exchange_arrays(const ir::Node* n, int64_t elements, std::map<int64_t, size_t>& used);
  void write_shared(const ir::Node* n, const Values& arrays, llvm::Value* at, const Values& v);
  Values read_shared(const ir::Node* n, const Values& arrays, llvm::Value* at);
  llvm::Value* shared_array(llvm::Type* type, int64_t elements);
  llvm::Value* given_array(int64_t offset);
  llvm::Value* first_thread_of(Ranges threads);
  Ranges threads_missing(const ir::Node* store) const;

  // emit_scalar.cpp
  llvm::Value* emit_scalar(const ir::Node* n);
  llvm::Value* quick(unsigned id, llvm::Value* x);
  llvm::Value* emit_sign(llvm::Value* x, DType t);
  llvm::Value* emit_rounding(ScalarOp op, llvm::Value* x);
  llvm::Value* emit_unary(ScalarOp op, llvm::Value* x, DType t);
  llvm::Value* emit_binary(ScalarOp op, llvm::Value* a, llvm::Value* b, DType t);
  llvm::Value* emit_compare(ScalarOp op, llvm::Value* a, llvm::Value* b, DType t);
  llvm::Value* extremum(bool max, llvm::Value* a, llvm::Value* b, DType t);
  llvm::Value* divide_longs(llvm::Value* a, llvm::Value* b);
  llvm::Value* divide(llvm::Value* a, llvm::Value* b, DType t, bool remainder);
  llvm::Value* shift(bool left, llvm::Value* a, llvm::Value* b, DType t);
  llvm::Value* round_to_even(llvm::Value* x);
  llvm::Value* constant_of(const ir::Arg& value, DType t);
  llvm::Value* call_function(MathFunction f, Values operands);

  // emit_random.cpp
  llvm::Value* emit_philox(llvm::Value* seed, llvm::Value* offset, llvm::Value* index);
  llvm::Function* philox_function(llvm::Type* seed, llvm::Type* block);

  // emit_convert.cpp
  llvm::Value* convert(llvm::Value* x, DType from, DType to);
  llvm::Value* narrow_to_float(llvm::Value* bits, DType from);
  llvm::Value* float_to_narrow(llvm::Value* x, DType to);
  llvm::Value* brain_to_float(llvm::Value* bits);
  llvm::Value* rounded_to_brain(llvm::Value* bits);
  llvm::Value* float_to_brain(llvm::Value* x);
  llvm::Value* vector_to_brain(llvm::Value* x);

  // types and vectors
  llvm::Type* register_type(DType t);  // of a scalar in a register: bool is i1; f16 and bf16 are their bits
  llvm::Type* memory_type(DType t);
  static int lanes_of(llvm::Value* v);
  llvm::Value* splat(llvm::Value* v, int lanes);
  void match(llvm::Value*& a, llvm::Value*& b);
  static llvm::Type* like(llvm::Type* scalar, llvm::Value* shape);
  llvm::Value* number(llvm::Type* t, int64_t v);
  llvm::Value* i64(int64_t v) { return b_.getInt64(v); }
  llvm::AllocaInst* stack(llvm::Type* t, int64_t count = 1, int align = 0);
  llvm::Value* intrinsic(unsigned id, llvm::ArrayRef<llvm::Value*> args, llvm::ArrayRef<llvm::Type*> types = {});
  llvm::Value* lane_numbers(int lanes, llvm::Type* scalar);

  llvm::Module& module_;
  const Target& target_;
  const ExpandedMath& kernel_;
  const ir::Graph& graph_;
  const std::unordered_set<const ir::Node*>& exact_;
  const std::map<Branch, std::vector<ir::Value>> branches_;
  const std::unordered_map<const ir::Node*, int> uses_;
  Nest nest_;
  const LoopAnalysis& analysis_;
  KernelLayout layout_;
  llvm::IRBuilder<> b_;
  llvm::FastMathFlags flags_;
  llvm::Function* function_ = nullptr;
  llvm::BasicBlock* entry_ = nullptr;  // allocas

  Values buffers_;  // by input: a buffer's address, or the slot of a number
  std::unordered_map<ir::Expr, llvm::Value*> sizes_;
  llvm::Value *begin_ = nullptr, *end_ = nullptr, *scratch_ = nullptr, *thread_ = nullptr;
  Values range_values_;  // by loop: the current index of serial, parallel, block and thread loops around this place
  std::vector<int> unrolled_;  // by loop: the current index of unroll loops
  bool flushes_ = false;       // the kernel adds up pairs, so that denormal bfloat16 are 0 in it anyway
  bool fuses_ = false;         // products and sums are one operation where that is allowed
  bool tiles_ = false;         // the kernel uses the processor's tiles
  bool aligned_ = false;       // buffers begin at multiples of 16 bytes
  VectorState vector_;
  bool anywhere_ = false;  // vectors begin at any place of the loop, not at whole steps alone
  bool borders_ = false;   // the loop that is emitted goes from one border to the next
  std::unordered_map<const ir::Node*, llvm::Value*> decided_;  // comparisons that come out alike for all of its lanes
  bool streams_ = false;                                       // some loop may write past the caches
  bool in_lines_ = false;                                      // what would is emitted elsewhere
  std::unordered_set<const ir::Node*> streamed_;               // stores of the loop that is emitted, past the caches
  std::unordered_set<const ir::Node*> short_;                  // its loads whose lanes' places have 32 bits
  std::unordered_set<const ir::Node*> shared_places_;          // those whose places other dimensions share
  std::vector<Frame> frames_;
  std::optional<std::vector<ir::Node*>> sure_loads_;  // once they are known
  std::unordered_map<const ir::Node*, Accumulators> accumulators_;
  std::unordered_map<const ir::Node*, llvm::Value*> arrays_;         // stages and tables
  std::map<std::pair<const ir::Node*, int>, llvm::Function*> rare_;  // of unlikely nodes, by lanes
  std::map<int64_t, std::vector<llvm::Value*>> exchanged_;           // shared arrays of reductions, by bytes
};

}  // namespace brasa::compiler
