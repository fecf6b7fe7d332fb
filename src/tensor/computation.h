#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ir/facts.h"
#include "program/variants.h"
#include "support/mutex.h"
#include "support/small_vector.h"
#include "tensor/args.h"
#include "tensor/tensor_impl.h"

namespace brasa::eager {

using Words = SmallVector<uint64_t, 12>;

/// A tensor that a computation reads: described by pointers into its owner.
struct InputTensor {
  void* data = nullptr;  // null: only the sizes matter
  const int64_t *sizes = nullptr, *strides = nullptr;
  uint32_t rank = 0;
  DType dtype = DType::Float32;
  bool weak = false, contiguous = true;
  const Tensor* tensor = nullptr;  // the owner, or null (numbers, shapes)
  runtime::Device* device =
      nullptr;  // where `data` is; null for what goes along with any device: numbers, shapes, random keys

  std::span<const int64_t> size_span() const { return {sizes, rank}; }
  std::span<const int64_t> stride_span() const { return {strides, rank}; }
  /// Read by the host when work is given to `target`, and then part of its arguments: numbers, tensors of the host without
  /// dimensions, and random keys.
  bool by_value(const runtime::Device& target) const {
    return !target.on_host() && (device ? rank == 0 && device->on_host() : rank == 0 || data);
  }
  static InputTensor of(const Tensor& t);
  /// The same of a tensor whose elements are not read, which need not be there yet.
  static InputTensor described(const Tensor& t);
};

/// Results of a call; the first few without an allocation.
class Results {
 public:
  size_t size() const { return size_; }
  void resize(size_t n) {
    if (n > kInline || !more_.empty()) more_.resize(n);
    size_ = n;
  }
  Tensor& operator[](size_t i) { return more_.empty() ? inline_[i] : more_[i]; }
  const Tensor& operator[](size_t i) const { return more_.empty() ? inline_[i] : more_[i]; }
  std::vector<Tensor> take();

 private:
  static constexpr size_t kInline = 3;
  Tensor inline_[kInline];
  std::vector<Tensor> more_;
  size_t size_ = 0;
};

/// In which order the dimensions of tensors lie in memory, from outside; row-major where it is empty, and behind the last.
struct Orders {
  std::vector<Sizes> inputs, results;
};

class Backward;

/// A function of tensors that the compiler can be given: a row with its other arguments fixed, or the derivative of a computation.
/// Lives for ever: the number of distinct ones is small, because numbers are symbols or inputs. Its variants do not.
class Computation {
 public:
  /// `one_shape`: whether its inputs may be of one shape at all; the alternative is that sizes of inputs carry numbers.
  Computation(std::string name, size_t inputs, bool one_shape = true)
      : name_(std::move(name)), inputs_(inputs), one_shape_(one_shape) {}
  virtual ~Computation() = default;
  Computation(const Computation&) = delete;
  Computation& operator=(const Computation&) = delete;

  /// Adds the computation's nodes to the current ops::Builder's graph.
  virtual std::vector<ir::Value> build(std::span<const ir::Value> inputs) const = 0;
  /// Replaces the types of inputs whose sizes follow from those of the inputs before them.
  virtual void derive_types(std::vector<ir::Type>&, ir::Facts&) const {}
  /// How a message names it: "aten::add.Tensor".
  const std::string& name() const { return name_; }
  size_t inputs() const { return inputs_; }
  bool one_shape() const { return one_shape_; }
  /// A result that is an input may be that tensor itself.
  virtual bool may_alias() const { return false; }
  /// Whether it sums up over what operands broadcast, which does not show where all are of one shape.
  virtual bool sums_up() const { return false; }
  virtual bool is_derivative() const { return false; }
  /// See ops::Row.
  virtual bool gradients_together() const { return false; }

  /// Whether results depend on operands element by element, so that dimensions can be merged. Learnt for each rank of the
  /// broadcast shape from symbolic sizes, because with a size of 1 many programs look like it, for each set of operands
  /// that have no dimensions, and for integers, of which some programs check values: `which` has a bit for each of these. Of a
  /// computation that is so for some other dtypes only, none is.
  enum class Mode : uint8_t { Unknown, Pointwise, Generic };
  static constexpr uint32_t kMaxRank = 20;  // what two bits a dimension in one word of a signature leave room for
  static constexpr uint32_t kMaxFlat = 5;   // operands that `which` tells apart
  static constexpr uint32_t kIntegers = 1u << kMaxFlat;
  Mode mode(uint32_t rank, uint32_t which) const {
    if (pointwise_[rank].load(std::memory_order_relaxed) >> which & 1) return Mode::Pointwise;
    return generic_[rank].load(std::memory_order_relaxed) >> which & 1 ? Mode::Generic : Mode::Unknown;
  }
  void set_mode(uint32_t rank, uint32_t which, bool pointwise) const {
    uint64_t bit = uint64_t{1} << which;
    (pointwise ? pointwise_ : generic_)[rank].fetch_or(bit, std::memory_order_relaxed);
    if (!pointwise) pointwise_[rank].fetch_and(~bit, std::memory_order_relaxed);
  }

  const program::VariantOwner& owner() const { return owner_; }
  /// Held while a variant is made.
  Mutex& mutex() const { return mutex_; }

  /// The form that writes into input 0.
  const Computation& in_place() const;
  /// The form whose operands and results have their dimensions as they lie in memory.
  const Computation& in_order(const Orders& orders) const;
  /// In which orders the results shall lie where the inputs lie in these, of those that have as many dimensions.
  virtual std::vector<Sizes> orders_of_results(const std::vector<Sizes>&) const { return {}; }
  /// The computation that gives the cotangents of the inputs marked in `needs` from all inputs, all results, and the cotangents
  /// of the results marked in `given`.
  const Backward& backward(const std::vector<bool>& needs, const std::vector<bool>& given) const;

 private:
  std::string name_;
  size_t inputs_;
  bool one_shape_;
  program::VariantOwner owner_;
  mutable std::array<std::atomic<uint64_t>, kMaxRank + 1> pointwise_{}, generic_{};  // bit `which`
  mutable Mutex mutex_;
  mutable std::unique_ptr<Computation> in_place_;
  mutable std::map<std::vector<int64_t>, std::unique_ptr<Computation>> in_order_;
  mutable std::map<std::pair<std::vector<bool>, std::vector<bool>>, std::unique_ptr<Backward>> backwards_;
};

/// Rows that are differentiated as they stand.
bool differentiated_whole(const ops::Row& row);

/// A row whose arguments other than tensors are fixed.
class RowComputation final : public Computation {
 public:
  /// An argument: fixed, or the input at `first`; a list has `presence`, and takes one input for each true. Integers that are
  /// symbols are that input's sizes, times `signs`; where a sign is 0 stands the number -1, which often means something else.
  struct Slot {
    ir::Arg fixed;
    int first = -1;
    bool list = false, size = false;
    std::vector<bool> presence;
    std::vector<int> signs;
  };
  RowComputation(const ops::Row& row, std::vector<Slot> slots, size_t inputs);
  std::vector<ir::Value> build(std::span<const ir::Value> inputs) const override;
  std::vector<Sizes> orders_of_results(const std::vector<Sizes>& inputs) const override;
  bool sums_up() const override { return is_derivative_; }
  bool is_derivative() const override { return is_derivative_; }
  bool gradients_together() const override;
  const ops::Row& row() const { return row_; }
  /// The form that a call runs whose results get gradients: where its derivative would make again what loops, costly rows and norms gave, Traced; else this one.
  const Computation& with_gradients(std::span<const InputTensor> inputs) const;

 private:
  enum class Loops : uint8_t { Unknown, None, Some };
  const ops::Row& row_;
  std::vector<Slot> slots_;
  bool is_derivative_;
  mutable std::atomic<Loops> loops_;
  mutable std::unique_ptr<Computation> traced_;
};

/// brasa::Error if results of one dtype must not be written into tensors of another.
void check_castable(DType from, DType to);

/// As `functional`, for a result that is written into input 0: it gets that input's dtype.
class InPlace final : public Computation {
 public:
  explicit InPlace(const Computation& functional)
      : Computation(functional.name(), functional.inputs(), functional.one_shape()), functional_(functional) {}
  std::vector<ir::Value> build(std::span<const ir::Value> inputs) const override;

 private:
  const Computation& functional_;
};

/// As `functional`, of operands and with results whose dimensions stand in the order in which they lie in memory.
class InOrder final : public Computation {
 public:
  InOrder(const Computation& functional, Orders orders)
      : Computation(functional.name(), functional.inputs(), functional.one_shape()),
        functional_(functional),
        orders_(std::move(orders)) {}
  std::vector<ir::Value> build(std::span<const ir::Value> inputs) const override;
  void derive_types(std::vector<ir::Type>& types, ir::Facts& facts) const override;
  bool may_alias() const override { return functional_.may_alias(); }

 private:
  const Computation& functional_;
  Orders orders_;
};

/// The derivative of a computation. Inputs: those of the computation, its results, then a cotangent for each given one. Gives one
/// result for each needed input; absent where no gradient flows.
class Backward final : public Computation {
 public:
  Backward(const Computation& forward, std::vector<bool> needs, std::vector<bool> given);
  std::vector<ir::Value> build(std::span<const ir::Value> inputs) const override;
  void derive_types(std::vector<ir::Type>& types, ir::Facts& facts) const override;
  bool may_alias() const override { return true; }
  bool is_derivative() const override { return true; }
  std::vector<Sizes> orders_of_results(const std::vector<Sizes>& inputs) const override;
  const std::vector<bool>& needs() const { return needs_; }
  /// Whether some result was found to be more than a view of an operand.
  bool computes() const { return computes_.load(std::memory_order_relaxed); }
  void set_computes() const { computes_.store(true, std::memory_order_relaxed); }

 private:
  const Computation& forward_;
  std::vector<bool> needs_, given_;
  mutable std::atomic<bool> computes_{false};
};

}  // namespace brasa::eager
