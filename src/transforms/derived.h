#pragma once

#include <string_view>
#include <vector>

#include "ir/facts.h"
#include "ops/table.h"

namespace brasa::transforms {

// Rows that follow from rows of the table, made on first use and kept. They let a recorded program name a derivative or a
// write through a view as one operator; their composition is the derivation.

/// `vjp::aten::gelu/10/1`: parameters of `row`, then `Tensor?[] results` and `Tensor?[] cts`, one for each result. Gives the cotangents of
/// the operands (tensors in the order of the arguments) that `needs` marks; zeros where none flows. `given` marks the cotangents that are
/// present. A result that is present is not computed again, and the derivative's derivative flows to it.
const ops::Row& vjp_row(const ops::Row& row, const std::vector<bool>& needs, const std::vector<bool>& given);

/// By result and tensor of a call of `row`: whether a gradient flows from one to the other. Only a row that `may_not_flow` has such to
/// which none does.
std::vector<std::vector<bool>> flows(const ops::Row& row, const ir::Args& args, ir::Facts& facts);
bool may_not_flow(const ops::Row& row, size_t results);

/// Whether a call's result comes from an operator of PyTorch's with a derivative of its own.
bool is_published(const ops::Row& row, const ir::Args& args, uint32_t result, ir::Facts& facts);

/// `vmap::aten::add.Tensor/10`: the same parameters, where the tensors that `mapped` marks have one more dimension in front: the
/// operands of many calls. Gives the results of all calls, each with that dimension.
const ops::Row& vmap_row(const ops::Row& row, const std::vector<bool>& mapped);
/// Whether a row is, or derives from, one of many calls: its operands are aligned at their first dimension, not at their last.
bool is_of_many_calls(const ops::Row& row);
/// Whether it is a vjp row or derived from one.
bool is_backward(const ops::Row& row);

/// `jvp::aten::gelu/1`: parameters of `row`, then `Tensor?[] tangents`, one for each tensor that `has_tangent` marks. Gives the
/// results, and behind them as many tangents of the results.
const ops::Row& jvp_row(const ops::Row& row, const std::vector<bool>& has_tangent);

/// `put::aten::select.int/0`: parameters of the view row, then `Tensor value`. Gives the first operand with `value` written
/// where the row's result number `result` looks.
const ops::Row& put_row(const ops::Row& view, int result);
bool is_put(const ops::Row& row);

/// `count::aten::nonzero`: the parameters of a row whose results' size depends on values. Gives that size, int64 of rank 0.
const ops::Row& count_row(const ops::Row& row);
/// `sized::aten::nonzero`: parameters of `row`, then `SymInt[1] count`, what its count row or its number_count gave. Gives the
/// results of `row`.
const ops::Row& sized_row(const ops::Row& row);

/// `flow::cond/3`: control flow whose bodies are functions of a program; `make` fills the row in if there is none of this name.
const ops::Row& flow_row(const std::string& name, const std::function<void(ops::Row&)>& make);
/// A graph of operators as text that any process reads: control flow, whose rows this one made, stands there as primitives with its bodies.
/// `facts` hold of its sizes.
std::string text_of(const ir::Graph& graph, ir::Facts facts);

/// A row of the table or a derived one by its name; null if there is none.
const ops::Row* find_row(std::string_view name);

/// Copies the graph's nodes into the current Builder's graph with `inputs` in place of its inputs; gives its outputs, with
/// absent Values at the places of checks, which become checks there too.
std::vector<ir::Value> splice(const ir::Graph& graph, const std::vector<ir::Value>& inputs);

}  // namespace brasa::transforms
