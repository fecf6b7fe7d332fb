#include "compiler/run/graph_cache.h"

#include <algorithm>
#include <atomic>
#include <type_traits>
#include <unordered_map>

#include "compiler/kernels/disk_cache.h"
#include "compiler/version.h"
#include "ir/copy.h"
#include "ir/text.h"
#include "runtime/cpu/examine.h"
#include "support/byte_reader.h"
#include "support/error.h"
#include "support/hash.h"
#include "support/log.h"
#include "support/settings.h"
#include "transforms/derived.h"

namespace brasa::compiler {

using ir::Graph;

namespace {

// A call of a library: the group that it computes.
struct Call {
  size_t step = 0, library = 0;  // of implementations()
  std::string graph;
  std::vector<std::vector<Expr>> output_strides;
  std::vector<bool> unwritten;
};

template <class T, class U>
concept Is = std::is_same_v<std::remove_const_t<T>, U>;

// What is kept of each type, for writing and for reading.
template <class A>
void fields(A& a, Is<Place> auto& p) {
  a(p.kind, p.index, p.offset);
}
template <class A>
void fields(A& a, Is<Step::Number> auto& n) {
  a(n.input, n.offset, n.bytes);
}
template <class A>
void fields(A& a, Is<Step> auto& s) {
  a(s.code, s.buffers, s.first_written, s.numbers, s.sizes, s.count, s.scratch, s.grain, s.threads, s.group, s.bytes,
    s.elements, s.results, s.steps, s.repeats, s.apart);
}
template <class A>
void fields(A& a, Is<Batch> auto& b) {
  a(b.begin, b.end);
}
template <class A>
void fields(A& a, Is<CompiledGraph::Check> auto& c) {
  a(c.after, c.buffer, c.message);
}
template <class A>
void fields(A& a, Is<ir::Type> auto& t) {
  a(t.dtype, t.shape, t.weak);
}
template <class A>
void fields(A& a, Is<PlannedBuffer> auto& b) {
  a(b.type, b.prepared, b.offset, b.first, b.last);
}
template <class A>
void fields(A& a, Is<Report> auto& r) {
  a(r.primitives, r.kernels, r.kernels_before, r.kernels_after, r.memory, r.arena_bytes, r.prepared_bytes,
    r.bytes_before, r.bytes_after);
}
template <class A>
void fields(A& a, Is<CompiledGraph::Parts> auto& p) {
  a(p.buffers, p.steps, p.batches, p.checks, p.arena_bytes, p.prepared, p.prepared_bytes, p.prepared_of.inputs,
    p.prepared_of.symbols, p.by_value, p.first_defined, p.defined, p.report);
}
template <class A>
void fields(A& a, Is<SizeProgram::Instruction> auto& i) {
  a(i.op, i.number, i.a, i.b);
}
template <class A>
void fields(A& a, Is<KernelCost> auto& c) {
  a(c.code, c.run);
}
template <class A>
void fields(A& a, Is<Call> auto& c) {
  a(c.step, c.library, c.graph, c.output_strides, c.unwritten);
}

template <class T>
concept Plain = std::is_arithmetic_v<T> || std::is_enum_v<T>;

// Expressions stand in a list of their own, as text.
class Writer {
 public:
  template <class... T>
  void operator()(const T&... items) {
    (put(items), ...);
  }
  const std::string& bytes() const { return bytes_; }
  const std::vector<Expr>& expressions() const { return expressions_; }

 private:
  template <Plain T>
  void put(T v) {
    bytes_.append(reinterpret_cast<const char*>(&v), sizeof v);
  }
  void put(const std::string& s) {
    put(s.size());
    bytes_ += s;
  }
  void put(Expr e) {
    auto [it, added] = known_.emplace(e, expressions_.size());
    if (added) expressions_.push_back(e);
    put(it->second);
  }
  void put(const SizeProgram& p) { (*this)(p.constant(), p.code()); }
  template <class T>
  void put(const std::vector<T>& items) {
    put(items.size());
    for (const auto& item : items) put(static_cast<const T&>(item));
  }
  template <class T>
    requires(!Plain<T>)
  void put(const T& item) {
    fields(*this, item);
  }

  std::string bytes_;
  std::vector<Expr> expressions_;
  std::unordered_map<Expr, size_t> known_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : in_(bytes, "a kept graph ends too early") {}
  void set_expressions(std::vector<Expr> e) { expressions_ = std::move(e); }

  template <class... T>
  void operator()(T&... items) {
    (get(items), ...);
  }
  bool at_end() const { return in_.left() == 0; }

 private:
  template <Plain T>
  void get(T& v) {
    v = in_.number<T>();
  }
  void get(bool& v) { v = in_.take(1)[0] != 0; }
  size_t size() {
    auto n = in_.number<size_t>();
    BRASA_CHECK(n <= in_.left(), "a kept graph has a list of ", n, " in ", in_.left(), " bytes");
    return n;
  }
  void get(std::string& s) { s = in_.take(size()); }
  void get(Expr& e) {
    size_t i;
    get(i);
    BRASA_CHECK(i < expressions_.size(), "a kept graph has no expression ", i);
    e = expressions_[i];
  }
  void get(SizeProgram& p) {
    int64_t constant;
    std::vector<SizeProgram::Instruction> code;
    (*this)(constant, code);
    p = SizeProgram(constant, std::move(code));
  }
  template <class T>
  void get(std::vector<T>& items) {
    for (size_t n = size(); n > 0; --n) {
      T item{};
      get(item);
      items.push_back(std::move(item));
    }
  }
  template <class T>
    requires(!Plain<T>)
  void get(T& item) {
    fields(*this, item);
  }

  ByteReader in_;
  std::vector<Expr> expressions_;
};

// Expressions as the sizes of a graph's only input, whose text declares their symbols.
std::string text_of(const std::vector<Expr>& expressions, std::span<const ir::Fact> facts) {
  Graph graph(ir::Level::Primitives);
  graph.add_input({DType::Int64, expressions, false});
  return ir::print(graph, facts);
}

size_t place_of(const Implementation* library) {
  auto all = implementations();
  return static_cast<size_t>(std::find(all.begin(), all.end(), library) - all.begin());
}

Group group_of(const Call& c) {
  BRASA_CHECK(c.library < implementations().size(), "a kept graph calls a library that there is not");
  Group group;
  group.kind = GroupKind::Library;
  group.library = implementations()[c.library];
  group.graph = ir::parse(c.graph, transforms::find_row);
  for (const ir::Input& in : group.graph->inputs()) group.inputs.push_back(in.value);
  for (const ir::Output& out : group.graph->outputs()) group.outputs.push_back(out.value);
  group.output_strides = c.output_strides;
  group.unwritten = c.unwritten;
  BRASA_CHECK(c.unwritten.empty() || c.unwritten.size() == group.inputs.size(), "a kept call is of ",
              group.inputs.size(), " inputs, not of ", c.unwritten.size());
  return group;
}

std::vector<Expr> symbols_of(const Graph& graph) {
  std::vector<Expr> found;
  auto see = [&](Expr e) { ir::collect_symbols(e, found); };
  for (const ir::Node* n : graph.nodes()) ir::each_size(*n, see);
  for (const ir::Input& in : graph.inputs()) std::for_each(in.strides.begin(), in.strides.end(), see);
  std::erase_if(found, [](Expr e) { return e->kind != ir::ExprKind::Size; });
  return found;
}

// That what refers to something by number refers to what there is.
void check_references(const Assembled& made, const Graph& graph) {
  const CompiledGraph::Parts& p = made.parts;
  size_t symbols = 0;
  for (Expr e : symbols_of(graph)) symbols = std::max<size_t>(symbols, e->id + 1);
  auto check = [](size_t i, size_t count, const char* what) {
    BRASA_CHECK(i < count, "a kept graph refers to ", what, " ", i, " of ", count);
  };
  auto check_program = [&](const SizeProgram& program) {
    for (const SizeProgram::Instruction& c : program.code())
      if (c.op == SizeProgram::Symbol) check(static_cast<size_t>(c.b), symbols, "symbol");
  };
  if (!p.defined.empty()) {
    check(p.first_defined, symbols + 1, "symbol");
    symbols = p.first_defined;
    for (const SizeProgram& program : p.defined) {
      check_program(program);
      ++symbols;
    }
  }
  for (const Place& b : p.buffers) {
    if (b.kind == Place::Input) check(static_cast<size_t>(b.index), graph.inputs().size(), "input");
    if (b.kind == Place::Output) check(static_cast<size_t>(b.index), graph.outputs().size(), "output");
    check(b.kind, Place::Prepared + 1, "kind");
  }
  for (const Step& s : p.steps) {
    if (!s.call && !s.library) check(s.code, made.texts.size(), "kernel");
    check(s.group, p.report.kernels.size(), "group");
    check(s.first_written, s.buffers.size() + 1, "buffer");
    for (int b : s.buffers) check(static_cast<size_t>(b), p.buffers.size(), "buffer");
    for (uint32_t id : s.sizes) check(id, symbols, "symbol");
    for (const Step::Number& n : s.numbers) {
      check(static_cast<size_t>(n.input), graph.inputs().size(), "input");
      check(n.bytes, sizeof(runtime::Slot) + 1, "byte");
    }
    for (const SizeProgram* program : {&s.count, &s.scratch, &s.bytes, &s.elements, &s.results, &s.steps})
      check_program(*program);
  }
  for (const Batch& b : p.batches) {
    check(b.end, p.steps.size() + 1, "step");
    check(b.begin, b.end, "step");
  }
  for (const CompiledGraph::Check& c : p.checks) {
    check(c.after + 1, p.steps.size() + 1, "step");  // -1: before all
    check(static_cast<size_t>(c.buffer), p.buffers.size(), "buffer");
  }
  check(p.prepared, p.batches.size() + 1, "batch");
  for (uint32_t i : p.prepared_of.inputs) check(i, graph.inputs().size(), "input");
  for (uint32_t i : p.prepared_of.symbols) check(i, symbols, "symbol");
  BRASA_CHECK(p.by_value.size() == graph.inputs().size(), "a kept graph is of ", p.by_value.size(), " inputs");
  BRASA_CHECK(made.costs.empty() || made.costs.size() == made.texts.size(), "a kept graph lacks times");
}

std::atomic<int64_t> g_found{0};

}  // namespace

std::string graph_key(const Graph& graph, const ir::Facts& facts, const CompilerOptions& options,
                      const runtime::Device& device, const Machine& machine) {
  const runtime::Properties& at = device.properties();
  const char* passes = environment("BRASA_DISABLE_PASSES");
  std::string all =
      str(kPipelineVersion, "\n", at.target, " ", at.code, " ", at.processors, " ", device.on_host(), " ");
  for (std::string_view library : machine.libraries.names()) all += str(library, ",");
  all += str(" ", options.target, " ", static_cast<int>(options.numbers), " ", machine.threads, " ", options.aligned,
             options.measure, options.join_products, options.keep_launches, options.size_classes, options.lasting, "\n",
             passes ? passes : "", "\n", facts.facts(), "\n");
  if (options.measure && device.on_host()) all += str(runtime::cpu::processor_model(), options.tune_seconds, "\n");
  for (Expr e : symbols_of(graph))
    if (facts.has_hint(e)) all += str(e, "=", facts.hint(e), " ");
  return "g" + hash_name(all + transforms::text_of(graph, facts));
}

std::string assembled_bytes(const Assembled& made, const Plan& plan, const ir::Facts& facts, size_t known,
                            size_t learned) {
  std::vector<Call> calls;
  for (size_t s = 0; s < made.parts.steps.size(); ++s) {
    const Group& group = plan.steps[made.parts.steps[s].group];
    if (group.kind == GroupKind::Library)
      calls.push_back({s, place_of(group.library), ir::print(*group.graph), group.output_strides, group.unwritten});
  }
  Writer body;
  body(made.parts, made.texts, made.costs, made.relies_on_alignment, calls);
  Writer out;
  out(text_of(body.expressions(), std::span(facts.facts()).subspan(known, learned - known)));
  return out.bytes() + body.bytes();
}

Assembled read_assembled(std::string_view bytes, const Graph& graph, const CompilerOptions& options, ir::Facts& facts) {
  Reader in(bytes);
  std::string expressions;
  in(expressions);
  std::vector<ir::Fact> learned;
  std::unique_ptr<Graph> sizes = ir::parse(expressions, transforms::find_row, &learned);
  BRASA_CHECK(sizes->inputs().size() == 1, "a kept graph has no list of expressions");
  in.set_expressions(type_of(sizes->inputs()[0].value).shape);
  ir::Facts now = facts;
  // Asked for in the order in which a fact of two compound sizes was: `equal` turns their sides round.
  for (const ir::Fact& f : learned)
    BRASA_CHECK(now.equal(f.right, f.left) == f.equal, "a kept graph is of other sizes: ", f);
  Assembled made;
  std::vector<Call> calls;
  in(made.parts, made.texts, made.costs, made.relies_on_alignment, calls);
  BRASA_CHECK(in.at_end(), "a kept graph has bytes behind its end");
  for (const Call& c : calls) {
    BRASA_CHECK(c.step < made.parts.steps.size(), "a kept graph has no step ", c.step);
    call_library(made.parts.steps[c.step], group_of(c), options, now);
  }
  check_references(made, graph);
  facts = std::move(now);
  return made;
}

std::optional<Assembled> find_assembled(const std::string& key, const Graph& graph, const CompilerOptions& options,
                                        ir::Facts& facts) {
  std::optional<std::string> bytes = DiskCache::get().read(key);
  if (!bytes) return std::nullopt;
  try {
    Assembled made = read_assembled(*bytes, graph, options, facts);
    if (logs("cache")) log_line("cache", str("graph ", key, " is on disk"));
    g_found.fetch_add(1, std::memory_order_relaxed);
    return made;
  } catch (const std::exception& e) {  // a library may find its own words for a group that it does not know
    if (logs("cache")) log_line("cache", str("graph ", key, " is damaged on disk: ", e.what()));
    return std::nullopt;
  }
}

int64_t assembled_graphs_found() { return g_found.load(std::memory_order_relaxed); }

}  // namespace brasa::compiler
