#include "check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <random>

#include "compiler/run/graph_cache.h"
#include "ir/copy.h"
#include "ir/text.h"
#include "ops/interpreter.h"
#include "ops/primitives/interp.h"
#include "runtime/device.h"
#include "support/str.h"

namespace brasa::compiler::testing {
namespace {

ops::Array random_array(const In& in, std::mt19937& rng) {
  ops::Array a = ops::make_array(in.dtype, in.sizes);
  std::uniform_real_distribution<double> real(in.low, in.high);
  for (int64_t i = 0; i < a.numel(); ++i) {
    double v = real(rng);
    if (is_integral(in.dtype, true))
      ops::set_int(a, i, static_cast<int64_t>(std::floor(v)));
    else
      ops::set(a, i, v);
  }
  return a;
}

double tolerance_of(DType t) {
  // A few units in the last place for each dtype, times what a chain of operations and a sum of some hundred terms adds.
  switch (t) {
    case DType::Float64: return 1e-12;
    case DType::Float32: return 2e-5;
    case DType::Float16: return 4e-3;
    case DType::BFloat16: return 3e-2;
    default: return 0;
  }
}

}  // namespace

namespace {

// The device's copy of the host's memory.
struct Copy {
  runtime::Device& device;
  void* host;
  size_t bytes;
  void* data;
  Copy(runtime::Device& d, void* h, size_t n)
      : device(d), host(h), bytes(n), data(d.allocate(n, runtime::kDefaultStream)) {
    device.upload(data, host, bytes, runtime::kDefaultStream);
  }
  Copy(Copy&& o) noexcept : device(o.device), host(o.host), bytes(o.bytes), data(std::exchange(o.data, nullptr)) {}
  ~Copy() { device.deallocate(data, bytes, runtime::kDefaultStream); }
  void send() { device.upload(data, host, bytes, runtime::kDefaultStream); }
  void fetch() { device.download(host, data, bytes, runtime::kDefaultStream); }
  std::vector<std::byte> contents() {
    std::vector<std::byte> out(bytes);
    device.download(out.data(), data, bytes, runtime::kDefaultStream);
    return out;
  }
};

// NaNs may differ in their digits: which operand's go on is the processor's choice.
bool same_bits(const std::vector<std::byte>& a, const std::vector<std::byte>& b, DType t) {
  if (a == b) return true;
  if (!is_floating(t)) return false;
  ops::Array x = ops::make_array(t, {static_cast<int64_t>(a.size()) / size_of(t)}), y = x;
  std::memcpy(x.data.data(), a.data(), x.data.size());
  std::memcpy(y.data.data(), b.data(), y.data.size());
  for (int64_t i = 0; i < x.numel(); ++i)
    if (std::memcmp(x.data.data() + i * size_of(t), y.data.data() + i * size_of(t), size_of(t)) != 0 &&
        !(std::isnan(ops::get(x, i)) && std::isnan(ops::get(y, i))))
      return false;
  return true;
}

Report check_one(const std::vector<In>& inputs, const Build& build, const Options& options) {
  ir::Graph graph(ir::Level::Primitives);
  std::vector<int64_t> hints;
  std::vector<ir::Value> values;
  std::map<int64_t, ir::Expr> known;
  auto by_value = [&](size_t i) {
    bool written = std::find(options.into.begin(), options.into.end(), static_cast<int>(i)) != options.into.end();
    return options.by_value && inputs[i].sizes.empty() && !written;
  };
  for (const In& in : inputs) {
    ir::Shape shape;
    std::vector<ir::Expr> strides;
    auto number = [&](int64_t n) {
      if (!options.symbolic) return ir::Expr(n);
      hints.push_back(n);
      return ir::Expr::size(static_cast<uint32_t>(hints.size()) - 1);
    };
    // Equal sizes are one symbol, as capture makes them.
    for (int64_t s : in.sizes) {
      auto [it, added] = known.try_emplace(s);
      if (added) it->second = number(s);
      shape.push_back(it->second);
    }
    for (int64_t s : in.strides) strides.push_back(number(s));
    values.push_back(graph.add_input({in.dtype, shape, false}, "", strides, by_value(values.size())));
  }
  ir::Facts facts(hints);
  {
    ops::Builder builder(graph, facts);
    std::vector<ir::Value> outputs = build(values);
    for (size_t i = 0; i < outputs.size(); ++i)
      graph.add_output(outputs[i], i < options.into.size() ? options.into[i] : -1);
  }

  std::mt19937 rng(7);
  std::vector<ops::Array> arrays;
  for (const In& in : inputs) arrays.push_back(random_array(in, rng));
  auto sized = ir::with_sizes(graph, [&](ir::Expr e) {
    return ir::Expr(ir::evaluate(e, [&](const ir::ExprNode& s) { return hints.at(s.id); }));
  });
  std::vector<ops::Array> expected = ops::evaluate(*sized, arrays);

  const ir::Facts before = facts;
  std::shared_ptr<Executable> executable = compile(graph, facts, options.compile);
  // Inputs in memory as their strides say.
  std::vector<std::vector<std::byte>> memory;
  std::vector<std::vector<int64_t>> strides;
  std::vector<Operand> operands;
  runtime::Device& device = options.compile.device ? *options.compile.device : runtime::host();
  std::vector<Copy> there;  // what operands point into, on the device
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::vector<int64_t> s = inputs[i].strides.empty() ? ops::row_major(inputs[i].sizes) : inputs[i].strides;
    int64_t size = size_of(inputs[i].dtype), last = 1;
    for (size_t d = 0; d < s.size(); ++d) last += std::max<int64_t>(inputs[i].sizes[d] - 1, 0) * s[d];
    memory.emplace_back(static_cast<size_t>(last * size + 64));
    strides.push_back(s);
    std::vector<int64_t> at(s.size());
    int64_t n = 0;
    if (arrays[i].numel() > 0) do {
        int64_t place = 0;
        for (size_t d = 0; d < s.size(); ++d) place += at[d] * s[d];
        std::memcpy(memory[i].data() + place * size, arrays[i].data.data() + n++ * size, static_cast<size_t>(size));
      } while (ops::next_index(at, inputs[i].sizes));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    there.emplace_back(by_value(i) ? runtime::host() : device, memory[i].data(), memory[i].size());
    operands.push_back({there.back().data, inputs[i].dtype, inputs[i].sizes, strides[i]});
  }
  const std::vector<int64_t>& symbols = hints;
  std::vector<ops::Array> results;
  std::vector<std::vector<int64_t>> result_strides;
  for (const ir::Type& t : executable->output_types()) {
    std::vector<int64_t> shape;
    for (ir::Expr e : t.shape) shape.push_back(executable->evaluate(e, symbols.data()));
    results.push_back(ops::make_array(t.dtype, shape));
    result_strides.push_back(ops::row_major(shape));
  }
  // What is not written must not look right by accident, and nothing beside a result is written.
  constexpr size_t kBeside = 1024;
  constexpr std::byte kUnwritten{0x5a};
  std::vector<std::vector<std::byte>> around;
  for (const ops::Array& r : results) around.emplace_back(r.data.size() + 2 * kBeside, kUnwritten);
  std::vector<Operand> outs;
  for (size_t i = 0; i < results.size(); ++i) {
    there.emplace_back(device, around[i].data(), around[i].size());
    outs.push_back(
        {static_cast<std::byte*>(there.back().data) + kBeside, results[i].dtype, results[i].shape, result_strides[i]});
  }
  auto nothing_beside = [&](const std::vector<std::byte>& bytes) {
    auto unwritten = [&](auto begin) {
      return std::all_of(begin, begin + kBeside, [](std::byte b) { return b == kUnwritten; });
    };
    return unwritten(bytes.begin()) && unwritten(bytes.end() - kBeside);
  };
  // With baseline code, where the kernels begin with it, with optimized code, and as the disk keeps the graph, on the same inputs.
  std::vector<std::vector<std::byte>> first;
  auto run = [&](const Executable& e, const char* how) {
    for (Copy& c : there) c.send();
    e.run(symbols.data(), operands, outs);
    bool again = !first.empty();
    for (size_t i = 0; i < there.size(); ++i) {
      std::vector<std::byte> bytes = there[i].contents();
      bool kept = i < inputs.size() || nothing_beside(bytes);
      EXPECT_TRUE(kept) << how << " writes beside result " << i - inputs.size() << " of\n" << ir::print(graph);
      if (again)
        EXPECT_TRUE(same_bits(first[i], bytes, i < inputs.size() ? inputs[i].dtype : outs[i - inputs.size()].dtype))
            << how << " gives another operand " << i << " of\n"
            << ir::print(graph);
      else
        first.push_back(std::move(bytes));
    }
  };
  run(*executable, "");
  executable->optimize(true);
  run(*executable, "optimized code");
  ir::Facts facts_again = before;
  int64_t found = assembled_graphs_found();
  std::shared_ptr<Executable> kept = compile(graph, facts_again, options.compile);
  if (assembled_graphs_found() > found) {
    run(*kept, "the graph from the disk");
    EXPECT_EQ(str(facts_again.facts()), str(facts.facts()));  // as text: what symbols are multiples of is not told
    EXPECT_EQ(report_of(*kept)->kernels, report_of(*executable)->kernels);
  }
  for (Copy& c : there) c.fetch();
  for (size_t i = 0; i < results.size(); ++i)
    std::copy_n(around[i].begin() + kBeside, results[i].data.size(), results[i].data.begin());

  size_t fresh = 0;
  for (size_t o = 0; o < graph.outputs().size(); ++o) {
    const ir::Output& output = graph.outputs()[o];
    const ops::Array& want = expected[o];
    ops::Array got;
    if (output.into < 0) {
      got = results[fresh++];
    } else {
      got = ops::make_array(want.dtype, want.shape);
      std::vector<int64_t> at(want.shape.size());
      int64_t n = 0, size = size_of(want.dtype);
      if (want.numel() > 0) do {
          int64_t place = 0;
          for (size_t d = 0; d < at.size(); ++d) place += at[d] * strides[output.into][d];
          std::memcpy(got.data.data() + n++ * size, memory[output.into].data() + place * size,
                      static_cast<size_t>(size));
        } while (ops::next_index(at, want.shape));
    }
    EXPECT_EQ(got.shape, want.shape);
    double tolerance = options.tolerance > 0 ? options.tolerance : tolerance_of(want.dtype);
    int wrong = 0;
    for (int64_t i = 0; i < want.numel() && wrong < 3; ++i) {
      bool ok;
      if (is_integral(want.dtype, true)) {
        ok = ops::get_int(got, i) == ops::get_int(want, i);
      } else {
        double a = ops::get(got, i), b = ops::get(want, i);
        ok = (std::isnan(a) && std::isnan(b)) || a == b || std::fabs(a - b) <= tolerance * std::max(1.0, std::fabs(b));
      }
      if (!ok) {
        ++wrong;
        ADD_FAILURE() << "output " << o << " element " << i << " is " << ops::get(got, i) << ", expected "
                      << ops::get(want, i) << "\n"
                      << ir::print(graph);
      }
    }
  }
  const Report* report = report_of(*executable);
  return report ? *report : Report{};
}

}  // namespace

Report check(const std::vector<In>& inputs, const Build& build, const Options& options) {
  Report report = check_one(inputs, build, options);
  if (!options.compile.target.empty() || options.compile.device) return report;
  for (const char* name : {"emu", "cuda"}) {
    if (!is_available(Device(name))) continue;
    Options there = options;
    there.compile.device = &runtime::device_of(Device(name));
    // What has no dimensions may as well be the host's.
    for (bool by_value : {false, true}) {
      if (by_value && std::none_of(inputs.begin(), inputs.end(), [](const In& in) { return in.sizes.empty(); }))
        continue;
      there.by_value = by_value;
      SCOPED_TRACE(str("on ", name, by_value ? ", numbers by value" : ""));
      check_one(inputs, build, there);
    }
  }
  return report;
}

void check_both(const std::vector<In>& inputs, const Build& build, double tolerance) {
  Options options;
  options.tolerance = tolerance;
  check(inputs, build, options);
  options.symbolic = true;
  check(inputs, build, options);
}

}  // namespace brasa::compiler::testing
