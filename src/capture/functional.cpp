#include "capture/functional.h"

#include <algorithm>
#include <utility>

#include <brasa/autograd.h>

#include "ops/table.h"
#include "support/error.h"
#include "support/lazy.h"
#include "tensor/computation.h"
#include "tensor/geometry.h"
#include "tensor/tensor_impl.h"
#include "tensor/views.h"

namespace brasa::capture {
namespace {

// Where a tensor, or what a link of a view gives, lies in its storage.
struct Place {
  DType dtype;
  const Sizes &sizes, &strides;
  int64_t offset;
  explicit Place(const TensorImpl& t) : dtype(t.dtype), sizes(t.sizes), strides(t.strides), offset(t.offset) {}
  explicit Place(const eager::ViewLink& l)
      : dtype(l.plan->dtype), sizes(l.plan->sizes), strides(l.plan->strides), offset(l.offset) {}
};

// How a tensor lies in a storage whose value begins at `origin`, as arguments of as_strided.
class Geometry {
 public:
  Geometry(const Place& p, int64_t origin)
      : args_{CallArg(), IntArrayRef(p.sizes.data(), p.sizes.size()), IntArrayRef(p.strides.data(), p.strides.size()),
              CallArg(p.offset - origin)} {}
  std::span<const CallArg> args() const { return args_; }

 private:
  CallArg args_[4];
};

// Whether the held value has all elements that the tensor looks at.
bool holds(const Held& held, const TensorImpl& t) {
  int64_t begin = t.offset - held.offset;
  return held.dtype == t.dtype && is_row_major(held.sizes(), held.strides()) && begin >= 0 &&
         begin + extent_of(t.sizes, t.strides) <= product(held.sizes());
}

}  // namespace

void Functional::becomes(Held& held, Number value) {
  changes(held);
  held.value = value;
}

Held* Functional::held(const Storage& storage) {
  return storage.recorder() == this ? &held_[storage.recorder_slot()] : nullptr;
}

// From now on the value of the tensor's storage is held here; what was saved of it before keeps the present one.
Held& Functional::hold(const Tensor& t) {
  const TensorImpl& impl = *checked_impl(t);
  if (Held* known = held(*impl.storage.get())) return *known;
  return eager::view_of(impl) ? hold(eager::base_of(t)) : hold_outside(t);
}

// A view that takes sizes may be all of the memory in this call and a part in others: it is recorded as the view that it is.
static bool is_all_by_chance(const eager::ViewLink& l) {
  const std::vector<ir::Param>& params = l.row->schema.params;
  return std::any_of(params.begin(), params.end(), [](const ir::Param& p) { return p.use == ir::NumberUse::Size; });
}

static bool is_value_of(const Held& known, const TensorImpl& t) {
  if (!known.covers(t)) return false;
  const eager::ViewInfo* view = eager::view_of(t);
  return !view || !view->last || !is_all_by_chance(*view->last);
}

Number Functional::number_of(const Tensor& t) {
  const TensorImpl& impl = *checked_impl(t);
  const Held* known = held(*impl.storage.get());
  if (!known) {
    if (impl.storage->recorder() == Recorder::lost()) impl.materialise("an operator");
    return outside(t);
  }
  return is_value_of(*known, impl) ? known->value : view_number(t);
}

// The links from what is held of a view's storage to the view, and the value that each starts from.
Functional::Way Functional::way_to(const eager::ViewInfo& view) {
  const Held* known = held(*impl_of(view.base)->storage.get());
  auto is_held = [&](const eager::ViewLink& l) {
    return known && known->covers(l.plan->dtype, l.plan->sizes, l.plan->strides, l.offset) && !is_all_by_chance(l);
  };
  Way way;
  const eager::ViewLink* link = view.last.get();
  do {
    way.links.push_back(link);
    link = link->before.get();
  } while (link && !is_held(*link));
  std::reverse(way.links.begin(), way.links.end());
  way.starts.push_back(link ? known->value : number_of(view.base));
  for (link = way.links[0]; link != way.links.back(); link = way.links[way.starts.size() - 1])
    way.starts.push_back(read_view(*link, way.starts.back()));
  return way;
}

// A tensor that looks at part of a storage whose value is held: its chain of views, replayed from that value.
Number Functional::view_number(const Tensor& t) {
  const eager::ViewInfo* view = eager::view_of(*impl_of(t));
  if (!view) {
    if (const Held* known = held(*impl_of(t)->storage.get()); holds(*known, *impl_of(t))) {
      static constinit Lazy<const ops::Row&> row([]() -> auto& { return ops::at("aten::as_strided"); });
      Geometry g(Place(*impl_of(t)), known->offset);
      return read_view(*row, g.args(), known->value);
    }
    materialise("a tensor that shares memory with a recorded one without being its view");
    return outside(t);
  }
  Way way = way_to(*view);
  return read_view(*way.links.back(), way.starts.back());
}

void Functional::keep_snapshots(const Storage* storage) {
  auto it = snapshots_.find(storage);
  if (it == snapshots_.end()) return;
  PooledVector<Tensor> tensors = std::move(it->second);
  snapshots_.erase(it);
  for (Tensor& t : tensors) {
    if (t.use_count() == 1) continue;  // only this list knows it
    Tensor copy = make_recorded(number_of(t));
    moves(t);  // it may be what an input was read by
    TensorImpl &to = *impl_of(t), &from = *impl_of(copy);
    to.storage = from.storage;
    to.offset = 0;
    to.strides = from.strides;
    to.view.reset();
    to.refresh();
  }
}

void Functional::put(const Tensor& target, Number value) {
  const TensorImpl& impl = *checked_impl(target);
  keep_snapshots(impl.storage.get());
  if (!held(*impl.storage.get()) && !may_hold(target, value)) return;
  if (Held& known = hold(target); known.covers(impl)) {
    becomes(known, value);
    return;
  }
  const eager::ViewInfo* view = eager::view_of(impl);
  if (!view) {
    Held& known = hold(target);
    if (!holds(known, impl)) {
      Tensor kept = make_recorded(value);
      materialise("a write through a tensor that shares memory with a recorded one without being its view");
      return put(target, number_of(kept));
    }
    Geometry g(Place(impl), known.offset);
    becomes(known, record_put(ops::at("aten::as_strided"), 0, g.args(), operands(g.args(), known.value), value));
    return;
  }
  put_through(*view, value);
}

void Functional::put_through(const eager::ViewInfo& view, Number value) {
  Way way = way_to(view);
  auto start = [&](size_t i) {
    const eager::ViewLink* before = way.links[i]->before.get();
    return before ? Place(*before) : Place(*impl_of(view.base));
  };
  auto row_major = [&](size_t i) { return is_row_major(start(i).sizes, start(i).strides); };
  for (size_t i = way.links.size(); i-- > 0;) {
    const eager::ViewLink& link = *way.links[i];
    if (!may_overlap_itself(start(i).sizes, start(i).strides)) {
      auto args = link.args->args();
      value = record_put(*link.row, link.result, args, operands(args, way.starts[i]), value);
      continue;
    }
    // Elements that are there several times are written where they lie.
    while (i > 0 && !row_major(i)) --i;
    Place part(link);
    if (!row_major(i)) {
      Tensor kept = make_recorded(value);
      materialise("a write through a view whose elements share memory");
      Recorder::Scope alone(nullptr);
      NoGradGuard guard;
      // The write is counted where it is recorded.
      StorageRef memory(Storage::alias(impl_of(view.base)->storage.get()));
      make_tensor(std::move(memory), part.dtype, part.sizes, part.strides, part.offset).copy_(kept);
      return;
    }
    Geometry g(part, start(i).offset);
    value = record_put(ops::at("aten::as_strided"), 0, g.args(), operands(g.args(), way.starts[i]), value);
  }
  if (way.links[0]->before)
    becomes(hold(view.base), value);
  else
    put(view.base, value);
}

void Functional::lose() {
  for (Held& h : held_) {
    if (h.input >= 0 || h.storage->recorder() != this)
      h.storage->end_recording();
    else
      h.storage->set_recorder(Recorder::lost(), 0);
  }
  held_.clear();
}

// `first` takes the place of the first argument.
Functional::Operands Functional::operands(std::span<const CallArg> args, Number first) {
  Operands out;
  auto add = [&](const Tensor& t) { out.push_back(t.defined() ? numbered(seen(t, number_of(t))) : ir::Value{}); };
  for (size_t i = 0; i < args.size(); ++i) {
    const CallArg& a = args[i];
    if (i == 0 && first != kNoNumber) {
      out.push_back(numbered(first));
      continue;
    }
    switch (a.kind) {
      case CallArg::Kind::Tensor: add(*a.tensor); break;
      case CallArg::Kind::Tensors:
        for (uint32_t k = 0; k < a.size; ++k) add(a.tensor[k]);
        break;
      case CallArg::Kind::OptionalTensors:
        for (uint32_t k = 0; k < a.size; ++k)
          a.optional_tensor[k] ? add(*a.optional_tensor[k]) : out.push_back(ir::Value{});
        break;
      default: break;
    }
  }
  return out;
}

Number Functional::read_view(const ops::Row& row, std::span<const CallArg> args, Number first) {
  uint32_t count = 0;
  return record(row, args, operands(args, first), true, count);
}

Number Functional::read_view(const eager::ViewLink& link, Number from) {
  return read_view(*link.row, link.args->args(), from) + static_cast<Number>(link.result);
}

void Functional::call(const ops::Row& row, std::span<const CallArg> args, eager::Results& results) {
  place(args);
  uint32_t segment = segments_, count = 0;
  Operands read = operands(args);
  // One that shares memory with what others hold has ended the segment: all are numbered in the next one.
  if (segments_ != segment) return call(row, args, results);
  Number first = record(row, args, read, false, count);
  results.resize(count);
  for (uint32_t r = 0; r < count; ++r) results[r] = make_recorded(first + r);
}

void Functional::lay_out(const Tensor& result, const Sizes& strides) {
  TensorImpl& impl = *impl_of(result);
  impl.strides = strides;
  impl.refresh();
  held(*impl.storage.get())->lay_out(strides);
}

void Functional::write(const Tensor& target, const Tensor& value) {
  runtime::Device &to = impl_of(target)->device(), &from = impl_of(value)->device();
  BRASA_CHECK(&to == &from, "Expected all tensors to be on the same device, but found at least two devices, ", to.str(),
              " and ", from.str(), "!");
  uint32_t segment = segments_;
  put(target, number_of(value));
  if (segments_ == segment) return;
  const CallArg written(target);
  place({&written, 1});
}

// Shares the storage until that is written (see keep_snapshots).
Tensor Functional::snapshot(const Tensor& t) {
  Tensor copy = shallow_copy(t);
  if (const auto& view = impl_of(t)->view) impl_of(copy)->view = std::make_unique<eager::ViewInfo>(*view);
  snapshots_[checked_impl(t)->storage.get()].push_back(copy);
  return copy;
}

}  // namespace brasa::capture
