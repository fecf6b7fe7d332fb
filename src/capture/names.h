#pragma once

#include <functional>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "capture/matching.h"
#include "capture/trace.h"
#include "tensor/known_sizes.h"

namespace brasa::capture {

class Path;

/// The name of an item among an integer argument's, of the only one where that is no list; 0: it has none.
uint32_t name_of(const CallArg& a, size_t item);

/// The integers that one recording knows as expressions of its values' sizes. Each of these sizes is a symbol of its own here, whatever the
/// trace has for it: a call may go over to another trace.
class Names final : public KnownSizes {
 public:
  /// `number_of` gives nothing for a tensor that the recording has not met.
  Names(Recorder& recorder, const Path& path, std::function<std::optional<Number>(const Tensor&)> number_of)
      : recorder_(recorder), path_(path), number_of_(std::move(number_of)) {}

  std::optional<ir::Expr> size_of(const Tensor& t, int64_t dim) override;
  uint32_t name_of(ir::Expr e) override;
  std::optional<ir::Expr> named(uint32_t name) const override;
  Recorder* recorder() override { return &recorder_; }
  void require(const ir::Expr& not_negative, const std::string& message) override {
    requirements_.push_back({not_negative, message});
  }

  /// In what is recorded for sizes where `not_negative` is what its name says.
  struct Requirement {
    ir::Expr not_negative;
    std::string message;
  };
  const std::vector<Requirement>& requirements() const { return requirements_; }
  /// An expression of these sizes as one of the trace's.
  ir::Expr in_trace(const ir::Expr& e) const;

  /// Makes the named integers of a call, as an event has them, the trace's expressions. Gives the arguments, a bit for each, that are whole ones.
  uint64_t put_in(Event& event, std::span<const CallArg> args) const;

 private:
  std::optional<ir::Expr> of(uint32_t name) const;

  Recorder& recorder_;
  const Path& path_;
  std::function<std::optional<Number>(const Tensor&)> number_of_;
  std::map<std::pair<Number, int64_t>, ir::Expr> symbols_;
  std::vector<std::pair<Number, int64_t>> sizes_;  // by symbol
  std::unordered_map<uint32_t, ir::Expr> named_;
  std::vector<Requirement> requirements_;
};

}  // namespace brasa::capture
