#pragma once

#include "tensor/computation.h"

// What costs much in an eager call is done once: its derivative reads what was made.
namespace brasa::eager {

/// As `functional`, of which what derivatives read again follows the results: what loops give, of each state a trace and what else the
/// steps make, the results of costly rows that have derivatives of their own, and the numbers that such rows give beside their first result.
class Traced final : public Computation {
 public:
  explicit Traced(const Computation& functional)
      : Computation(functional.name(), functional.inputs(), functional.one_shape()), functional_(functional) {}
  std::vector<ir::Value> build(std::span<const ir::Value> inputs) const override;
  std::vector<Sizes> orders_of_results(const std::vector<Sizes>& inputs) const override {
    return functional_.orders_of_results(inputs);
  }
  bool is_derivative() const override { return functional_.is_derivative(); }
  bool gradients_together() const override { return functional_.gradients_together(); }
  /// How many results are the functional's, which is known once it was built.
  size_t own_results() const { return own_results_.load(std::memory_order_relaxed); }

 private:
  const Computation& functional_;
  mutable std::atomic<size_t> own_results_{0};
};

/// Whether calls of a row may be traced.
bool may_be_traced(const ops::Row& row);
/// Whether a graph makes what is kept.
bool has_kept(const ir::Graph& graph);

}  // namespace brasa::eager
