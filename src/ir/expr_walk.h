#pragma once

#include <functional>
#include <span>

#include "ir/expr.h"

// What goes through an expression from its root, beside what expr.h has.
namespace brasa::ir {

/// The same operation on f of each part, in normal form; a symbol and a constant are what they are.
Expr with_parts(const Expr& e, const std::function<Expr(const Expr&)>& f);

/// What an expression is where s<id> is symbols[id]; brasa::InternalError where it has another symbol. What large parts are is remembered on
/// this thread until a call with other symbols, so that sizes that nest cost what each adds to the one before.
int64_t value_of(const Expr& e, std::span<const int64_t> symbols);

}  // namespace brasa::ir
