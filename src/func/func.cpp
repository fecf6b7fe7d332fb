#include <brasa/func.h>

#include <memory>

#include <brasa/autograd.h>
#include <brasa/brasa.h>

#include "func/level.h"
#include "support/error.h"
#include "tensor/dispatch.h"
#include "tensor/tensor_impl.h"
#include "transforms/derived.h"

namespace brasa::func {

namespace {

bool has_derivative(const Tensor& t) { return is_floating(t.scalar_type()) || brasa::is_complex(t.scalar_type()); }

std::vector<bool> lifted(const std::vector<const Lift*>& operands) {
  std::vector<bool> out;
  for (const Lift* l : operands) out.push_back(l->lifted);
  return out;
}

class MapLevel final : public Level {
 public:
  MapLevel(int64_t calls, std::string_view randomness) : calls_(calls), randomness_(randomness) {
    BRASA_CHECK(randomness == "error" || randomness == "different" || randomness == "same",
                "vmap: randomness is \"error\", \"different\" or \"same\", got \"", randomness, "\"");
  }
  std::vector<Lift> transformed(const ops::Row& row, std::vector<CallArg> args,
                                const std::vector<const Lift*>& operands) override {
    std::vector<Lift> out;
    for (Tensor& t : eager::call_list(eager::op(transforms::vmap_row(row, lifted(operands))), args))
      out.push_back({std::move(t), {}, true});
    return out;
  }
  Sizes inner_sizes(const Lift& lift) const override {
    const Sizes& all = impl_of(lift.value)->sizes;
    return Sizes(std::span<const int64_t>(all.begin() + lift.lifted, all.end()));
  }
  const char* name() const override { return "vmap"; }
  Lift drawn(const ops::Row& row, const Tensor& key, const runtime::Device& device) override {
    BRASA_CHECK(
        randomness_ != "error", "vmap: ", row.name(),
        " draws random numbers; say with randomness \"different\" or \"same\" whether each call has its own, or draw "
        "them outside and pass them in");
    if (randomness_ == "same") return {key, {}, false};
    // Each call has a stream of its own: another seed. The factor, 2^64 over the golden ratio, keeps nested maps apart.
    constexpr auto kSpread = static_cast<int64_t>(0x9e3779b97f4a7c15u);
    std::vector<int64_t> column(static_cast<size_t>(key.dim()), 1);
    column[0] = calls_;
    Tensor seeds = (key.select(-1, 0).unsqueeze(0) +
                    arange(1, calls_ + 1, TensorOptions(kInt64).device(device.id())).view(column)) *
                   kSpread;
    return {stack({seeds, key.select(-1, 1).unsqueeze(0).expand_as(seeds)}, -1), {}, true};
  }

 private:
  int64_t calls_;
  std::string randomness_;
};

class TangentLevel final : public Level {
 public:
  std::vector<Lift> transformed(const ops::Row& row, std::vector<CallArg> args,
                                const std::vector<const Lift*>& operands) override {
    std::vector<Tensor> tangents;
    for (const Lift* l : operands)
      if (l->lifted) tangents.push_back(l->tangent);
    std::vector<std::optional<Tensor>> items(tangents.begin(), tangents.end());
    // The list is the last parameter, behind those that the call leaves out.
    const ops::Row& derived = transforms::jvp_row(row, lifted(operands));
    eager::Literals defaults;
    defaults.fill_up(args, derived, derived.schema.params.size() - 1);
    args.emplace_back(ArrayRef<std::optional<Tensor>>(items));
    std::vector<Tensor> all = eager::call_list(eager::op(derived), args);
    std::vector<Lift> out;
    size_t n = all.size() / 2;
    for (size_t i = 0; i < n; ++i) {
      bool carries = has_derivative(all[i]);
      out.push_back({all[i], carries ? all[n + i] : Tensor(), carries});
    }
    return out;
  }
  Lift without_derivatives(Lift lift) const override { return {lift.value.detach(), {}, false}; }
  Sizes inner_sizes(const Lift& lift) const override { return impl_of(lift.value)->sizes; }
  const char* name() const override { return "jvp"; }
};

// Autograd of its own: what it leads to outside is the business of the tensors that the function's stand for.
class GradientLevel final : public Level {
 public:
  std::vector<Lift> transformed(const ops::Row& row, std::vector<CallArg>, const std::vector<const Lift*>&) override {
    fail_internal(str("an operand of ", row.name(), " is lifted where nothing is"));
  }
  Sizes inner_sizes(const Lift& lift) const override { return impl_of(lift.value)->sizes; }
  const char* name() const override { return "vjp"; }
};

// f, which must give one tensor, as a function of one of its inputs.
detail::Function of_one(const detail::Function& f, const detail::Tensors& inputs, size_t argnum, const char* name) {
  return [&f, &inputs, argnum, name](const detail::Tensors& x) {
    detail::Tensors all = inputs;
    all[argnum] = x[0];
    detail::Tensors results = f(all);
    BRASA_CHECK(results.size() == 1, name, ": the function must give one tensor, got ", results.size());
    return results;
  };
}

std::vector<int64_t> joined(IntArrayRef a, IntArrayRef b) {
  std::vector<int64_t> sizes = a.vec();
  sizes.insert(sizes.end(), b.begin(), b.end());
  return sizes;
}

// Each element's unit vector: [numel, sizes…].
Tensor basis(const Tensor& like) {
  std::vector<int64_t> sizes = like.sizes().vec();
  sizes.insert(sizes.begin(), like.numel());
  return eye(like.numel(), TensorOptions().dtype(like.scalar_type()).device(like.device())).view(sizes);
}

void check_argnum(const detail::Tensors& inputs, size_t argnum, const char* name) {
  BRASA_CHECK(argnum < inputs.size(), name, ": there is no input ", argnum, "; the function has ", inputs.size());
}

}  // namespace

namespace detail {

Tensors vmap(const Function& f, const Tensors& inputs, const std::vector<std::optional<int64_t>>& in_dims,
             int64_t out_dim, std::string_view randomness) {
  BRASA_CHECK(in_dims.empty() || in_dims.size() == inputs.size(), "vmap: in_dims has ", in_dims.size(), " entries for ",
              inputs.size(), " inputs");
  std::optional<int64_t> calls;
  Tensors moved = inputs;
  std::vector<bool> mapped(inputs.size(), true);
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::optional<int64_t> dim = in_dims.empty() ? 0 : in_dims[i];
    mapped[i] = dim.has_value();
    if (!dim) continue;
    BRASA_CHECK(inputs[i].dim() > 0, "vmap: input ", i, " has no dimension to map over: ", inputs[i]);
    moved[i] = inputs[i].movedim(*dim, 0);
    int64_t size = moved[i].size(0);
    BRASA_CHECK(!calls || *calls == size, "vmap: the inputs' mapped dimensions differ in size: ", *calls, " and ", size,
                " (input ", i, ")");
    calls = size;
  }
  BRASA_CHECK(calls, "vmap: no input has a dimension to map over");
  Tensors out;
  {
    MapLevel level(*calls, randomness);
    Tensors seen;
    for (size_t i = 0; i < inputs.size(); ++i) seen.push_back(mapped[i] ? level.wrap({moved[i], {}, true}) : moved[i]);
    Tensors results;
    {
      Level::Scope scope(level);
      results = f(seen);
    }
    for (const Tensor& t : results) {
      Lift l = level.unwrap(t);
      if (!l.lifted) {
        std::vector<int64_t> sizes = l.value.sizes().vec();
        sizes.insert(sizes.begin(), *calls);
        l.value = l.value.unsqueeze(0).expand(sizes);
      }
      out.push_back(out_dim == 0 ? l.value : l.value.movedim(0, out_dim));
    }
  }
  return out;
}

std::pair<Tensors, Tensors> jvp(const Function& f, const Tensors& primals, const Tensors& tangents) {
  BRASA_CHECK(primals.size() == tangents.size(), "jvp: ", primals.size(), " primals and ", tangents.size(),
              " tangents");
  TangentLevel level;
  Tensors seen;
  for (size_t i = 0; i < primals.size(); ++i) {
    BRASA_CHECK(primals[i].sizes() == tangents[i].sizes() && primals[i].scalar_type() == tangents[i].scalar_type(),
                "jvp: primal ", i, " is ", primals[i], " and its tangent ", tangents[i]);
    seen.push_back(level.wrap({primals[i], tangents[i], true}));
  }
  Tensors results, values, directions;
  {
    Level::Scope scope(level);
    results = f(seen);
  }
  for (const Tensor& t : results) {
    Lift l = level.unwrap(t);
    values.push_back(l.value);
    directions.push_back(l.tangent.defined() ? l.tangent : zeros_like(l.value));
  }
  return {values, directions};
}

std::pair<Tensors, std::function<Tensors(const Tensors&)>> vjp(const Function& f, const Tensors& primals) {
  // What the second function needs of the first one's run.
  struct Run {
    GradientLevel level;
    Tensors seen, results;
  };
  auto run = std::make_shared<Run>();
  Tensors values;
  {
    Level::Scope scope(run->level);
    AutoGradMode enabled(true);
    for (const Tensor& t : primals) {
      run->seen.push_back(run->level.wrap({t, {}, false}));
      if (has_derivative(t)) run->seen.back().requires_grad_();
    }
    run->results = f(run->seen);
  }
  for (const Tensor& t : run->results) values.push_back(run->level.unwrap(t).value);
  auto back = [run](const Tensors& cts) -> Tensors {
    BRASA_CHECK(cts.size() == run->results.size(), "vjp: ", run->results.size(), " results and ", cts.size(),
                " cotangents");
    Tensors outputs, given, from, out(run->seen.size());
    for (size_t i = 0; i < cts.size(); ++i)
      if (run->results[i].requires_grad()) {
        outputs.push_back(run->results[i]);
        given.push_back(cts[i]);
      }
    for (const Tensor& t : run->seen)
      if (t.requires_grad()) from.push_back(t);
    if (!outputs.empty() && !from.empty()) {
      Tensors found;
      {
        Level::Scope scope(run->level);
        found = autograd::grad(outputs, from, given, true, false, true);
      }
      for (size_t i = 0, k = 0; i < out.size(); ++i)
        if (run->seen[i].requires_grad() && found[k++].defined()) out[i] = run->level.unwrap(found[k - 1]).value;
    }
    for (size_t i = 0; i < out.size(); ++i)
      if (!out[i].defined()) out[i] = zeros_like(run->level.unwrap(run->seen[i]).value);
    return out;
  };
  return {values, back};
}

Tensor grad(const Function& f, const Tensors& inputs, size_t argnum) {
  check_argnum(inputs, argnum, "grad");
  auto [values, back] = vjp(of_one(f, inputs, argnum, "grad"), {inputs[argnum]});
  BRASA_CHECK(values[0].dim() == 0, "grad: the function must give one number, got ", values[0]);
  return back({ones_like(values[0])})[0];
}

Tensor jacrev(const Function& f, const Tensors& inputs, size_t argnum) {
  check_argnum(inputs, argnum, "jacrev");
  auto [values, back] = vjp(of_one(f, inputs, argnum, "jacrev"), {inputs[argnum]});
  Tensor rows = vmap(back, {basis(values[0])}, {}, 0)[0];
  return rows.reshape(joined(values[0].sizes(), inputs[argnum].sizes()));
}

Tensor jacfwd(const Function& f, const Tensors& inputs, size_t argnum) {
  check_argnum(inputs, argnum, "jacfwd");
  const Tensor& x = inputs[argnum];
  Function along = [&](const Tensors& v) { return jvp(of_one(f, inputs, argnum, "jacfwd"), {x}, v).second; };
  Tensor columns = vmap(along, {basis(x)}, {}, -1)[0];  // [sizes of the result, numel of x]
  return columns.reshape(joined(columns.sizes().slice(0, columns.dim() - 1), x.sizes()));
}

}  // namespace detail
}  // namespace brasa::func
