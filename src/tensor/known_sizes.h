#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "ir/expr.h"
#include "support/scoped.h"
#include "support/thread_word.h"

namespace brasa {

class Recorder;
class Tensor;

/// What a recording of a graph for many sizes tells those who compute with sizes while it records: what these are for other sizes, too. A call
/// gets an integer that is made of them with a name that stands for the expression (CallArg::named), so that nobody guesses from its value.
class KnownSizes {
 public:
  /// Of this thread; null: sizes are numbers.
  static KnownSizes* current() { return current_; }
  virtual ~KnownSizes() = default;

  /// A size of a tensor as an expression, whose symbols are this recording's own; nothing for one that it has not met.
  virtual std::optional<ir::Expr> size_of(const Tensor& t, int64_t dim) = 0;
  virtual uint32_t name_of(ir::Expr e) = 0;  // never 0
  /// Nothing for a name that another recording gave.
  virtual std::optional<ir::Expr> named(uint32_t name) const = 0;
  virtual Recorder* recorder() = 0;
  /// What is recorded is for sizes where the expression is not negative. Elsewhere it is an error with this message.
  virtual void require(const ir::Expr& not_negative, const std::string& message) = 0;
  /// Says in a message which part of a program makes the calls; empty where nobody does.
  std::function<std::string()> caller;

  /// Installs it on this thread.
  class Scope : Scoped<KnownSizes*> {
   public:
    explicit Scope(KnownSizes* known) : Scoped(current_, known) {}
  };

 private:
  BRASA_THREAD_WORD static inline KnownSizes* current_ = nullptr;
};

}  // namespace brasa
