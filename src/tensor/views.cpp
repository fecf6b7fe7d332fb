#include "tensor/views.h"

#include <brasa/autograd.h>

#include <algorithm>
#include <forward_list>

#include "ops/builder.h"
#include "ops/primitives/interp.h"
#include "support/error.h"
#include "support/lazy.h"
#include "support/pool_allocator.h"
#include "tensor/autograd/record.h"
#include "tensor/geometry.h"
#include "tensor/keyed_cache.h"
#include "tensor/recorder.h"

namespace brasa::eager {
namespace {

using Kind = CallArg::Kind;
using Plans = std::vector<std::shared_ptr<const ViewPlan>>;

// A call that the cache knows: same row, arguments, sizes and strides. Of a further tensor a view takes the type alone.
struct CachedCall {
  Plans plans;  // empty: no view is possible
  std::shared_ptr<const ArgStore> args = nullptr;
  bool computes = false;  // so no memory makes it a view
};
using Cache = KeyedCache<std::shared_ptr<const CachedCall>, 8192>;

// False if an argument cannot be part of a key.
bool make_key(const Operator& op, CallArgs args, Cache::Key& key) {
  key.push_back(reinterpret_cast<int64_t>(&op));
  const TensorImpl& self = *impl_of(*args[0].tensor);
  key.push_back(self.rank());
  key.push_back(static_cast<int64_t>(self.dtype));
  for (int64_t s : self.sizes) key.push_back(s);
  for (int64_t s : self.strides) key.push_back(s);
  for (size_t i = 1; i < args.size(); ++i) {
    const CallArg& a = args[i];
    key.push_back(static_cast<int64_t>(a.kind) << 32 | int64_t{a.named} << 40 | a.size);
    switch (a.kind) {
      case Kind::None: break;
      case Kind::Int:
      case Kind::Bool:
      case Kind::DType: key.push_back(a.integer); break;
      case Kind::Ints:
        for (uint32_t k = 0; k < (a.named ? 2 * a.size : a.size); ++k) key.push_back(a.ints[k]);
        break;
      case Kind::Scalar:
        if (!a.scalar->isIntegral(true) || a.scalar->type() == DType::UInt64) return false;
        key.push_back(static_cast<int64_t>(a.scalar->type()));
        key.push_back(a.scalar->toLong());
        break;
      case Kind::Tensor: {
        // A recording has to know which tensor it is.
        if (!a.tensor->defined() || Recorder::current()) return false;
        const TensorImpl& other = *impl_of(*a.tensor);
        key.push_back(other.rank() << 1 | int64_t{other.weak});
        key.push_back(static_cast<int64_t>(other.dtype));
        for (int64_t s : other.sizes) key.push_back(s);
        break;
      }
      default: return false;
    }
  }
  return true;
}

ir::Value input_of(ir::Graph& graph, const Tensor& t) {
  const TensorImpl* impl = checked_impl(t);
  return graph.add_input({impl->dtype, {impl->sizes.begin(), impl->sizes.end()}, impl->weak});
}

ViewStep step_of(const ops::Row& row, ir::Args args, ir::Value v) {
  const ir::Type &from = ir::type_of(args[0].get<ir::Value>()), &to = ir::type_of(v);
  return {&row, std::move(args), ops::constants(from.shape), ops::constants(to.shape), from.dtype, to.dtype};
}

// The chain of movements from the graph's first input to v; nothing if there are other nodes between.
std::optional<std::vector<ViewStep>> chain_of(const ir::Graph& graph, ir::Value v) {
  std::vector<ViewStep> steps;
  while (!ir::is_input(v)) {
    const ops::Row& row = ops::row_of(*v.node);
    if (!row.view_rule) return std::nullopt;
    steps.push_back(step_of(row, v.node->args, v));
    v = v.node->arg<ir::Value>(0);
  }
  if (graph.input_index(v) != 0) return std::nullopt;
  std::reverse(steps.begin(), steps.end());
  return steps;
}

// The dimension of which a row takes a range; -1 for other rows.
int64_t range_of(const ops::Row& row, const ir::Args& args, int64_t rank) {
  int dim = row.schema.index_of("dim"), start = row.schema.index_of("start");
  auto* given = dim >= 0 && start >= 0 ? args[dim].get_if<ir::Expr>() : nullptr;
  if (!given || !given->is_constant()) return -1;
  return given->constant() + (given->constant() < 0 ? rank : 0);
}

CachedCall plan(const Operator& op, CallArgs args) {
  ir::Graph graph(ir::Level::Primitives);
  ir::Facts facts;
  ir::Args values = literals(op.row(), args);
  for (size_t i = 0; i < args.size(); ++i) {
    std::vector<ir::Value> items;
    each_tensor(args[i], [&](const Tensor& t) { items.push_back(input_of(graph, t)); });
    const ir::Param& p = op.row().schema.params[i];
    if (args[i].kind == Kind::Tensor)
      values[i] = ir::Arg(items[0]);
    else if (args[i].kind == Kind::Tensors)
      values[i] = ir::Arg(std::move(items));
    else if (p.type == ir::ParamType::Tensor)
      values[i] = literal(args[i], p, op.row());  // a number, or an error
  }
  std::vector<ir::Value> results;
  {
    ops::Builder builder(graph, facts);
    results = builder.call(op.row(), values);
  }
  const TensorImpl& self = *impl_of(*args[0].tensor);
  Plans plans;
  for (ir::Value v : results) {
    // A row that is no composition of movements says itself where its result lies.
    auto steps = op.row().view_rule ? std::vector{step_of(op.row(), values, v)} : chain_of(graph, v);
    if (!steps) return {.plans = {}, .computes = true};
    ops::Strided at{self.sizes.vec(), self.strides.vec(), 0};
    for (ViewStep& s : *steps) {
      auto next = s.row->view_rule(s.args, at);
      if (!next) return {};
      at = std::move(*next);
      s.args[0] = ir::Arg();  // it goes with the graph
    }
    auto made = std::make_shared<ViewPlan>();
    made->steps = std::move(*steps);
    made->dtype = ir::type_of(v).dtype;
    made->sizes = at.sizes;
    made->strides = at.strides;
    made->offset = at.offset;
    if (made->steps.empty()) made->range = range_of(op.row(), values, std::ssize(self.sizes));
    plans.push_back(std::move(made));
  }
  return {std::move(plans)};
}

// A tensor of the same type in next to no memory.
Tensor of_same_type(const Tensor& t) {
  const TensorImpl& impl = *impl_of(t);
  StorageRef element(Storage::make(static_cast<size_t>(size_of(impl.dtype)), impl.device()));
  Tensor out = make_tensor(std::move(element), impl.dtype, impl.sizes, Sizes(impl.sizes.size()), 0);
  impl_of(out)->weak = impl.weak;
  return out;
}

std::shared_ptr<const CachedCall> cached(const Operator& op, CallArgs args) {
  Cache* cache = Cache::get();
  Cache::Key key;
  bool keyed = cache && make_key(op, args, key);
  if (auto* known = keyed ? cache->find(key) : nullptr) return *known;
  // The first argument is replaced on replay; kept, it would keep its memory, and so would others in the cache.
  std::vector<CallArg> rest = args.vec();
  rest[0] = CallArg();
  std::forward_list<Tensor> others;
  for (CallArg& a : rest)
    if (keyed && a.kind == Kind::Tensor) a = CallArg(others.emplace_front(of_same_type(*a.tensor)));
  CachedCall call = plan(op, args);
  call.args = std::make_shared<ArgStore>(rest);
  auto made = std::make_shared<const CachedCall>(std::move(call));
  return keyed ? cache->add(key, std::move(made)) : made;
}

}  // namespace

static autograd::CreationMeta creation(bool one_of_several) {
  if (InferenceMode::is_enabled()) return autograd::CreationMeta::INFERENCE_MODE;
  if (!GradMode::is_enabled()) return autograd::CreationMeta::NO_GRAD_MODE;
  return one_of_several ? autograd::CreationMeta::MULTI_OUTPUT_NODE : autograd::CreationMeta::DEFAULT;
}

// The same view by fewer links where one of the last looks at the memory like it: to transpose again and again adds none. A recording keeps
// a step that leads nowhere with these sizes, as the whole of what is cut: with others it may lead somewhere.
static std::shared_ptr<ViewLink> without_detour(const std::shared_ptr<ViewLink>& made) {
  constexpr int kNear = 8;
  const ViewPlan& plan = *made->plan;
  std::shared_ptr<ViewLink> at = made->before;
  if (at && Recorder::current()) at = at->before;
  for (int i = 0; at && i < kNear; ++i, at = at->before)
    if (at->offset == made->offset && at->plan->dtype == plan.dtype && at->plan->sizes == plan.sizes &&
        at->plan->strides == plan.strides)
      return at;
  return made;
}

static bool make_views(Operator& op, CallArgs args, Results& results) {
  const Tensor& self = *args[0].tensor;
  const TensorImpl& from = *impl_of(self);
  std::shared_ptr<const CachedCall> call;
  try {
    call = cached(op, args);
  } catch (const Error& e) {
    rethrow_named(op, args, e);
  }
  // An empty list of views (split of nothing) is a list of views.
  const std::vector<ir::Return>& returns = op.row().schema.returns;
  if (call->plans.empty() && !(returns.size() == 1 && returns[0].list)) {
    BRASA_CHECK(op.row().must_alias.empty(), op.row().must_alias, " (", op.row().name(), " of ", self, " with strides ",
                from.strides, ")");
    if (from.contiguous || call->computes) return false;
    // Over a contiguous copy it is a view.
    Tensor copy = self.contiguous();
    std::vector<CallArg> with_copy = args.vec();
    with_copy[0] = CallArg(copy);
    return make_views(op, with_copy, results);
  }
  const Plans& plans = call->plans;
  results.resize(plans.size());
  bool history = GradMode::is_enabled() && !from.inference && self.requires_grad() && !op.row().no_gradient;
  // A recording has each view by itself, and so has a call whose places are a tensor's values.
  const auto& params = op.row().schema.params;
  bool together =
      history && plans.size() > 1 && !Recorder::current() &&
      std::count_if(params.begin(), params.end(), [](auto& p) { return p.type == ir::ParamType::Tensor; }) == 1;
  for (size_t i = 0; i < plans.size(); ++i) {
    const ViewPlan& plan = *plans[i];
    int64_t offset = from.offset;
    if (plan.dtype != from.dtype) [[unlikely]] {
      int64_t bytes = offset * size_of(from.dtype), size = size_of(plan.dtype);
      BRASA_CHECK(bytes % size == 0, op.row().name(), ": the offset ", offset, " of ", self, " must be divisible by ",
                  size / size_of(from.dtype));
      offset = bytes / size;
    }
    results[i] = make_tensor(from.storage, plan.dtype, plan.sizes, plan.strides, offset + plan.offset);
    TensorImpl* to = impl_of(results[i]);
    to->inference = from.inference;
    to->view = std::make_unique<ViewInfo>();
    ViewInfo& info = *to->view;
    info.base = base_of(self);
    info.differentiable = !from.view || from.view->differentiable;
    info.creation = creation(plans.size() > 1);
    // Inference mode is never left by another view.
    if (from.view && (info.creation == autograd::CreationMeta::DEFAULT ||
                      from.view->creation == autograd::CreationMeta::INFERENCE_MODE))
      info.creation = from.view->creation;
    auto link = std::allocate_shared<ViewLink>(PoolAllocator<ViewLink>());
    link->row = &op.row();
    link->args = call->args;
    link->result = static_cast<int>(i);
    link->plan = plans[i];
    link->offset = to->offset;
    if (const ViewInfo* way = view_of(from)) link->before = way->last;
    info.version = from.storage->version();
    info.base_moves = impl_of(info.base)->moves;
    // A gradient goes back along all links.
    info.last = history ? link : without_detour(link);
    if (history && !together) autograd::attach_view(results[i], self, {link.get()});
  }
  if (together) autograd::attach_views(results, self, op.row(), call->args, plans);
  return true;
}

static bool is_whole_memory(const TensorImpl& t) {
  return t.contiguous && t.offset == 0 && t.numel * size_of(t.dtype) == static_cast<int64_t>(t.storage->bytes());
}

// Whether all elements at sizes, strides and an offset in the memory are a tensor's, which has them as they lie.
static bool lie_within(const TensorImpl& t, const CallArg& sizes, const CallArg& strides, int64_t offset) {
  int64_t end = offset + extent_of({sizes.ints, sizes.size}, {strides.ints, strides.size});
  return t.contiguous && offset >= t.offset && end <= t.offset + t.numel;
}

// A dense tensor as it lies.
static Tensor in_order_of_memory(const Tensor& t) {
  const TensorImpl& impl = *impl_of(t);
  if (impl.contiguous || !is_dense(impl.sizes, impl.strides)) return t;
  Sizes order = order_in_memory(impl.strides);
  return t.permute(IntArrayRef(order.data(), order.size()));
}

static bool takes_offset(const ops::Row& row) { return row.over_storage && row.schema.index_of("storage_offset") >= 0; }

// A view of the memory behind a tensor, at an offset in the memory. Its gradient is the tensor's, where that has the elements.
static bool view_memory(Operator& as_strided, CallArgs args, Results& results) {
  const Tensor& self = *args[0].tensor;
  const TensorImpl& from = *impl_of(self);
  std::vector<CallArg> other = args.vec();
  other.resize(4);
  CallArg& offset = other[3];
  if (offset.kind == Kind::None) offset = CallArg(from.offset);
  auto lies_within = [&](const Tensor& t) {
    return other[1].size == other[2].size && offset.kind == Kind::Int && impl_of(t)->dtype == from.dtype &&
           lie_within(*impl_of(t), other[1], other[2], offset.integer);
  };
  auto make_views_of = [&](const Tensor& t) {
    other[0] = CallArg(t);
    offset = CallArg(offset.integer - impl_of(t)->offset);
    make_views(as_strided, other, results);
  };
  if (lies_within(self)) return make_views_of(self), true;
  bool history = GradMode::is_enabled() && self.requires_grad();
  BRASA_CHECK(!history || !may_overlap_itself(from.sizes, from.strides), as_strided.row().schema.base,
              ": there is no gradient for ", self, " with strides ", from.strides, ", whose elements share memory");
  // A write into it is seen in the base's gradient.
  if (Tensor base = in_order_of_memory(base_of(self)); lies_within(base)) {
    make_views_of(base);
  } else {
    auto extent = static_cast<int64_t>(from.storage->bytes()) / size_of(from.dtype);
    Tensor memory = make_tensor(from.storage, from.dtype, Sizes{extent}, Sizes{1}, 0);
    other[0] = CallArg(memory);
    make_views(as_strided, other, results);
  }
  if (history) autograd::attach_memory_view(results[0], self);
  return true;
}

bool call_view(Operator& op, CallArgs args, Results& results) {
  if (args.empty() || args[0].kind != Kind::Tensor) return false;
  bool part = op.row().over_storage && args.size() >= 3 && !is_whole_memory(*impl_of(*args[0].tensor));
  if (!part) return make_views(op, args, results);
  static constinit Lazy<Operator&> as_strided([]() -> auto& { return eager::op("aten::as_strided"); });
  return view_memory(takes_offset(op.row()) ? op : *as_strided, args, results);
}

std::vector<const ViewLink*> links_to(const ViewLink* last) {
  std::vector<const ViewLink*> links;
  for (; last; last = last->before.get()) links.push_back(last);
  std::reverse(links.begin(), links.end());
  return links;
}

Tensor replay(const ViewLink* last, Tensor base) {
  for (const ViewLink* link : links_to(last)) {
    std::vector<CallArg> args = link->args->args().vec();
    args[0] = CallArg(base);
    if (takes_offset(*link->row)) {  // a link's offset is in the tensor before it, a call's in the memory
      args.resize(4);
      int64_t within = args[3].kind == Kind::Int ? args[3].integer : 0;
      args[3] = CallArg(within + impl_of(base)->offset);
    }
    base = std::move(call_list(op(*link->row), args)[link->result]);
  }
  return base;
}

Tensor detached(const Tensor& t) {
  Tensor out = shallow_copy(t);
  if (const auto& view = impl_of(t)->view) {
    impl_of(out)->view = std::make_unique<ViewInfo>(*view);
    ViewInfo& info = *impl_of(out)->view;
    info.differentiable = false;
    info.base = shallow_copy(view->base);
  }
  if (Recorder* recorder = Recorder::current()) [[unlikely]]
    recorder->detached(out);
  return out;
}

// Links that nobody else holds go here rather than in the destructor of the next: there may be any number of them.
ViewLink::~ViewLink() {
  std::shared_ptr<ViewLink> next = std::move(before);
  while (next && next.use_count() == 1) next = std::move(next->before);
}

}  // namespace brasa::eager
