#include "export/words.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "export/alone/runtime.h"
#include "export/alone/weights.h"
#include "export/steps.h"
#include "ir/copy.h"
#include "ir/text.h"
#include "support/error.h"
#include "support/hash.h"

namespace brasa::exporting {

using compiler::Place;
using compiler::SizeProgram;

namespace {

constexpr int64_t kAlign = 64;
constexpr int64_t kUnbounded = int64_t{1} << 60;  // elements
constexpr int64_t kMostWords = 512;  // of symbols, instructions and integers that are read, on the runtime's stack

std::string_view stored_name(DType t) {
  switch (t) {
    case DType::Bool: return "BOOL";
    case DType::UInt8: return "U8";
    case DType::Int8: return "I8";
    case DType::Int16: return "I16";
    case DType::Int32: return "I32";
    case DType::Int64: return "I64";
    case DType::Float16: return "F16";
    case DType::BFloat16: return "BF16";
    case DType::Float32: return "F32";
    case DType::Float64: return "F64";
    default:
      fail(str("export: an input, output or state of dtype ", name(t), "; safetensors and C have no name for it"));
  }
}

int64_t aligned(int64_t n) { return (n + kAlign - 1) / kAlign * kAlign; }
void pad(std::string& s) { s.resize(static_cast<size_t>(aligned(static_cast<int64_t>(s.size())))); }

bool all_zero(std::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](char c) { return c == 0; });
}

std::string_view bytes_of(const Tensor& t) {
  return {static_cast<const char*>(t.data_ptr()), static_cast<size_t>(t.numel() * t.element_size())};
}

// Where constants lie: those that are no state are one wherever their bytes are equal.
class Memory {
 public:
  Memory(const std::vector<StateTensor>& state, const std::vector<Variant>& variants) {
    bytes.assign(kWeightHead, '\0');
    for (const StateTensor& s : state) {
      if (!state_.try_emplace(s.tensor.data_ptr(), state_bytes).second) continue;
      std::string_view first = bytes_of(s.tensor);
      auto size = static_cast<int64_t>(first.size());
      // A weight's place is never 0: the head is there.
      initial.insert(initial.end(), {state_bytes, all_zero(first) ? 0 : weight(first), size});
      state_bytes = (state_bytes + size + 63) / 64 * 64;
    }
    for (const Variant& v : variants)
      for (const Captured::Source& s : v.captured->sources)
        if (!s.unknown) place(s);
    if (bytes.size() == kWeightHead) bytes.clear();
    if (bytes.empty()) return;
    id = static_cast<int64_t>(alone_hash(bytes.data() + kWeightHead, bytes.size() - kWeightHead));
    std::memcpy(bytes.data(), "BRASAW01", 8);
    std::memcpy(bytes.data() + 8, &id, sizeof id);
  }
  std::pair<int64_t, int64_t> place(const Captured::Source& s) {
    if (s.input >= 0) return {kFromInput, s.input};
    BRASA_CHECK(
        !s.unknown,
        "export: the function computes with random numbers that were drawn before, or with a number that is only "
        "known when it runs; programs that run alone have neither");
    std::string_view content = s.bytes();
    if (auto it = state_.find(content.data()); it != state_.end() && s.tensor.defined())
      return {kFromState, it->second};
    return {kFromWeights, content.empty() ? 0 : weight(content)};
  }
  int64_t state_at(const StateTensor& s) const { return state_.at(s.tensor.data_ptr()); }
  std::string bytes;
  int64_t id = 0, state_bytes = 0;
  std::vector<int64_t> initial;

 private:
  int64_t weight(std::string_view content) {
    uint64_t hash = hash_bytes(content.data(), content.size());
    auto [from, to] = known_.equal_range(hash);
    for (; from != to; ++from)
      if (bytes.compare(from->second, content.size(), content) == 0) return static_cast<int64_t>(from->second);
    pad(bytes);
    known_.emplace(hash, bytes.size());
    bytes += content;
    return static_cast<int64_t>(bytes.size() - content.size());
  }
  std::multimap<uint64_t, size_t> known_;
  std::map<const void*, int64_t> state_;
};

class Writer {
 public:
  Writer(const std::vector<InputType>& inputs, const std::vector<OutputType>& outputs,
         const std::vector<StateTensor>& state, const std::vector<Variant>& variants, bool gpu)
      : inputs_(inputs), outputs_(outputs), memory_(state, variants), store_(gpu) {
    words_.resize(kFirstVariant + variants.size());
    words_[kVersion] = kPlanVersion;
    words_[kInputs] = static_cast<int64_t>(inputs.size());
    words_[kOutputs] = static_cast<int64_t>(outputs.size());
    words_[kVariants] = static_cast<int64_t>(variants.size());
    for (const Variant& v : variants) {
      stages_ += static_cast<int64_t>(v.code.size());
      own_symbols_ = std::max(own_symbols_, symbols_of(*v.captured));
    }
    words_[kInputAt] = at();
    for (const InputType& t : inputs) input(t);
    words_[kOutputAt] = at();
    for (const OutputType& t : outputs)
      put({text(""), text(stored_name(t.dtype)), static_cast<int64_t>(size_of(t.dtype)), t.rank});
    words_[kStateAt] = at();
    put({static_cast<int64_t>(memory_.initial.size() / 3)});
    words_.insert(words_.end(), memory_.initial.begin(), memory_.initial.end());
    words_[kStates] = static_cast<int64_t>(state.size());
    words_[kStateTensorAt] = at();
    for (const StateTensor& s : state) state_tensor(s);
    for (size_t v = 0; v < variants.size(); ++v) {
      words_[kFirstVariant + v] = at();
      variant(variants[v]);
    }
    table(kModules, kModuleAt, store_.modules, 3);
    table(kKernels, kKernelAt, store_.kernels, 2);
    words_[kLibraries] = store_.libraries;
    words_[kCalls] = store_.library_calls;
    words_[kWeightBytes] = static_cast<int64_t>(memory_.bytes.size());
    words_[kWeightId] = memory_.id;
    words_[kStateBytes] = memory_.state_bytes;
    words_[kPreparedBytes] = prepared_bytes_;
    int64_t room = kMostWords - words_[kSymbols] - words_[kCounts];
    BRASA_CHECK(words_[kValues] <= room, "export: the program's sizes are expressions of ", words_[kValues],
                " operations, of which ", room, " have room");
  }

  Sections sections() {
    Sections s;
    s.code = std::move(store_.code);
    s.plan.assign(reinterpret_cast<const char*>(words_.data()), words_.size() * sizeof(int64_t));
    s.text = std::move(store_.text);
    s.weight_bytes = static_cast<int64_t>(memory_.bytes.size());
    s.weights = std::move(memory_.bytes);
    s.state_bytes = memory_.state_bytes;
    s.prepared_bytes = prepared_bytes_;
    s.gpu = store_.gpu();
    s.calls = store_.calls;
    if (fixed_) {
      int64_t words =
          s.gpu ? 0 : words_[kBuffers] + words_[kSymbols] + words_[kValues] + words_[kCounts] + words_[kSlots];
      s.memory_bytes = (8 * words + 63) / 64 * 64 + memory_bytes_ + 64;  // as alone_memory counts
    }
    return s;
  }

 private:
  int64_t at() const { return static_cast<int64_t>(words_.size()); }
  void put(std::initializer_list<int64_t> words) { words_.insert(words_.end(), words); }
  void put(const Words& words) { words_.insert(words_.end(), words.begin(), words.end()); }
  void table(int count, int place, const Words& records, int64_t each) {
    words_[count] = static_cast<int64_t>(records.size()) / each;
    words_[place] = at();
    put(records);
  }
  void most(int field, size_t n) { words_[field] = std::max(words_[field], static_cast<int64_t>(n)); }
  int64_t text(std::string_view s) { return store_.text_at(s); }
  void size(const SizeProgram& p) {
    put_size(words_, p);
    most(kValues, p.code().size());
  }
  void input(const InputType& t) {
    put({text(t.name), text(stored_name(t.dtype)), static_cast<int64_t>(size_of(t.dtype)),
         static_cast<int64_t>(t.sizes.size())});
    for (const InputType::Size& s : t.sizes)
      put({s.fixed() ? s.least : -1, s.least, s.greatest, s.same_input, s.same_dim});
  }

  void state_tensor(const StateTensor& s) {
    put({text(s.name), text(stored_name(s.tensor.scalar_type())), s.tensor.element_size(), s.tensor.dim(),
         memory_.state_at(s)});
    for (int64_t n : s.tensor.sizes().vec()) put({n});
  }

  void variant(const Variant& v) {
    const Captured& c = *v.captured;
    put({v.level, static_cast<int64_t>(c.stages.list.size())});
    StepWriter steps(store_, own_symbols_, v.level);
    know_sizes(c, steps);
    std::vector<int64_t> kept;  // buffers of values that stages keep
    for (size_t s = 0; s < c.stages.list.size(); ++s) {
      size_t head = words_.size();
      put({0, 0});
      counts(c, s, kept);
      put_symbols(c, s);
      put_requirements(c, s);
      put_facts(v, s);
      stage(v, s, steps, kept);
      words_[head + 1] = at() - static_cast<int64_t>(head + steps.steps.size());
      words_[head] = at() - static_cast<int64_t>(head) - 1;
    }
    most(kSymbols, static_cast<size_t>(steps.symbols()));
    most(kValues, static_cast<size_t>(steps.values()));
    most(kSlots, static_cast<size_t>(steps.slots()));
    most(kBuffers, static_cast<size_t>(steps.buffer_count()));
    most(kCounts, c.counts.size());
    fixed_ = fixed_ && steps.memory() >= 0;
    memory_bytes_ = std::max(memory_bytes_, steps.memory());
    bool unbounded = steps.unbounded();
    for (size_t r = 0; r < outputs_.size(); ++r)
      for (const ir::Expr& e : fresh_types(c)[c.outputs[r]]->shape)
        unbounded = unbounded || steps.known(SizeProgram(e)).range.high >= kUnbounded;
    if (unbounded) refuse_unbounded(c);
  }

  [[noreturn]] static void refuse_unbounded(const Captured& c) {
    std::string readers;
    for (const Captured::Read& r : c.counts)
      if (r.greatest.is(INT64_MAX)) readers += str(readers.empty() ? "" : ", ", r.reader);
    fail(str("export: ", readers,
             " depends on values, and nothing says how great it may be; memory of programs that run ",
             "alone is known before a run: give a bound (torch._check(n <= 1000) in Python, item_within in C++)"));
  }

  // Whether it is the same in all runs: a constant has it, or an input whose size does not vary.
  bool always_known(const Captured& c, uint32_t symbol) const {
    auto is = [&](const ir::Expr& e) { return e->kind == ir::ExprKind::Size && e->id == symbol; };
    for (size_t i = 0; i < c.sources.size(); ++i) {
      const ir::Input& in = c.graph->inputs()[i];
      const ir::Shape& shape = ir::type_of(in.value).shape;
      auto input = static_cast<size_t>(c.sources[i].input);
      bool constant = c.sources[i].input < 0;
      if (constant && std::any_of(in.strides.begin(), in.strides.end(), is)) return true;
      for (size_t d = 0; d < shape.size() && (constant || input < inputs_.size()); ++d)
        if (is(shape[d]) && (constant || inputs_[input].sizes[d].fixed())) return true;
    }
    return false;
  }

  // What runs may find: sizes of this recording, and integers within their ranges.
  void know_sizes(const Captured& c, StepWriter& steps) const {
    auto inputs = static_cast<int>(c.sizes.size() - c.counts.size());
    auto each_symbol = [&](size_t source, auto&& f) {
      for (const ir::Expr& e : ir::type_of(c.graph->inputs()[source].value).shape)
        if (e->kind == ir::ExprKind::Size) f(e);
    };
    for (uint32_t id = 0; id < symbols_of(c); ++id) {
      int64_t size = c.facts.hint(ir::Expr::size(id));
      steps.know(id, {size_range(size, size), always_known(c, id)});
    }
    // In the order in which they are read: the range of one may be made of another.
    for (const Stage& stage : c.stages.list)
      for (size_t k : stage.reads) {
        StepWriter::Known least = steps.known(SizeProgram(c.counts[k].least)),
                          greatest = steps.known(SizeProgram(c.counts[k].greatest));
        StepWriter::Known known{size_range(least.range.low, greatest.range.high), least.always && greatest.always};
        for (size_t i = 0; i < c.sources.size(); ++i)
          if (c.sources[i].input == inputs + static_cast<int>(k))
            each_symbol(i, [&](const ir::Expr& e) {
              if (c.stages.known_in.at(e->id) > 0) steps.know(e->id, known);
            });
      }
  }

  // Those that are read when the stage begins.
  void counts(const Captured& c, size_t stage, const std::vector<int64_t>& kept) {
    const Stages& stages = c.stages;
    const std::vector<size_t>& reads = stages.list[stage].reads;
    put({static_cast<int64_t>(reads.size())});
    for (size_t k : reads) {
      put({static_cast<int64_t>(k), kept.at(stages.kept_count.at(k)), text(c.counts[k].reader)});
      size(SizeProgram(c.counts[k].least));
      size(SizeProgram(c.counts[k].greatest));
    }
  }

  void put_facts(const Variant& v, size_t stage) {
    const Stages& stages = v.captured->stages;
    auto when = [&](const ir::Fact& f) { return std::max(stages.stage_of(f.left), stages.stage_of(f.right)); };
    put({std::count_if(v.facts.begin(), v.facts.end(), [&](const ir::Fact& f) { return when(f) == stage; })});
    for (const ir::Fact& f : v.facts) {
      if (when(f) != stage) continue;
      put({f.equal});
      size(SizeProgram(f.left));
      size(SizeProgram(f.right));
    }
  }

  void put_requirements(const Captured& c, size_t stage) {
    auto is_here = [&](const auto& r) { return c.stages.stage_of(r.first) == stage; };
    put({std::count_if(c.requirements.begin(), c.requirements.end(), is_here)});
    for (const auto& r : c.requirements) {
      if (!is_here(r)) continue;
      put({text(r.second)});
      size(SizeProgram(r.first));
    }
  }

  void stage(const Variant& v, size_t number, StepWriter& steps, std::vector<int64_t>& kept) {
    const Captured& c = *v.captured;
    const Stage& stage = c.stages.list[number];
    const compiler::Portable& code = v.code[number];
    bool is_last = number + 1 == c.stages.list.size();
    std::vector<const ir::Type*> fresh = fresh_types(c);
    std::vector<int64_t> result(fresh.size());
    for (size_t r = 0; r < outputs_.size(); ++r) result[c.outputs[r]] = static_cast<int64_t>(r);
    steps.begin_stage();
    for (size_t k : stage.keeps) {
      const ir::Type& t = c.stages.kept[k];
      kept.push_back(steps.keep(SizeProgram(t.numel() * ir::Expr(size_of(t.dtype)))));
    }
    Prepared prepared = prepared_by(v, number);
    steps.write(code, prepared.once, [&](const Place& p) {
      auto at = static_cast<size_t>(p.index);
      if (p.kind == Place::Output && !is_last) return kept.at(stage.keeps.at(at));
      if (p.kind == Place::Output) return steps.outside(kFromOutput, result[at]);
      if (p.kind == Place::Prepared) return steps.outside(kFromPrepared, prepared.at + c.facts.hint(p.offset));
      if (at >= c.sources.size()) return kept.at(stage.takes.at(at - c.sources.size()));
      auto [from, where] = memory_.place(c.sources[at]);
      return steps.outside(from, where);
    });
    put(steps.sizes);
    for (size_t r = 0; r < outputs_.size() && is_last; ++r)
      for (const ir::Expr& e : fresh[c.outputs[r]]->shape) size(SizeProgram(e));
    put(steps.buffers);
    put(steps.steps);
  }

  // What stages prepare: which it is of all, and where it lies. Those that do the same share it.
  struct Prepared {
    size_t once;
    int64_t at;
  };
  // Behind a byte for each stage of each variant. Its sizes are those of weights, which are known.
  Prepared prepared_by(const Variant& v, size_t number) {
    const Captured& c = *v.captured;
    const compiler::CompiledGraph::Parts& parts = v.code[number].parts;
    if (!parts.prepared) return {0, 0};
    std::string key = str(v.level, "\n");
    const ir::Graph& whole = *c.stages.list[number].graph;
    ir::Graph graph(whole.level());
    ir::ValueMap map;
    for (const ir::Node* n : ir::live_nodes(whole)) {
      if (n->op != ir::input_op()) continue;
      ir::Value value{const_cast<ir::Node*>(n), 0};
      auto input = static_cast<size_t>(whole.input_index(value));
      const ir::Input& in = whole.inputs()[input];
      map.set(value, graph.add_input(ir::type_of(value), "", in.strides, in.by_value));
      if (input >= c.sources.size() || c.sources[input].unknown) continue;
      auto [from, where] = memory_.place(c.sources[input]);
      key += str(from, " ", where, "\n");
    }
    ir::copy_live_nodes(graph, whole, map);
    for (const ir::Output& o : whole.outputs()) graph.outputs().push_back({map(o.value), o.into, o.check});
    key += ir::print(graph);
    for (const ir::Fact& f : v.facts)
      if (std::max(c.stages.stage_of(f.left), c.stages.stage_of(f.right)) <= number) key += str(f, "\n");
    auto [at, fresh] = prepared_.try_emplace(key, Prepared{prepared_.size(), 0});
    if (!fresh) return at->second;
    if (!prepared_bytes_) prepared_bytes_ = aligned(stages_);
    at->second.at = prepared_bytes_;
    prepared_bytes_ += aligned(c.facts.hint(parts.prepared_bytes));
    return at->second;
  }

  // Of the outputs in memory of their own.
  static std::vector<const ir::Type*> fresh_types(const Captured& c) {
    std::vector<const ir::Type*> out;
    for (const ir::Output& o : c.graph->outputs())
      if (o.check.empty() && o.into < 0) out.push_back(&ir::type_of(o.value));
    return out;
  }

  // How many the variant's inputs have.
  static size_t symbols_of(const Captured& c) {
    size_t count = 0;
    for (const ir::Input& in : c.graph->inputs())
      for (const auto* list : {&ir::type_of(in.value).shape, &in.strides})
        for (const ir::Expr& e : *list)
          if (e->kind == ir::ExprKind::Size) count = std::max<size_t>(count, e->id + 1);
    return count;
  }

  // The stage that knows the size of an input, of which the integers that are read are the last ones.
  size_t stage_of(const Captured& c, int64_t input) const {
    int64_t count = input - words_[kInputs];
    return count < 0 ? 0 : c.stages.read_in.at(static_cast<size_t>(count));
  }

  // From sizes of inputs; those of constants are known.
  void put_symbols(const Captured& c, size_t stage) {
    std::map<uint32_t, std::vector<int64_t>> read, known;
    for (size_t i = 0; i < c.sources.size(); ++i) {
      const ir::Input& in = c.graph->inputs()[i];
      auto look = [&](const std::vector<ir::Expr>& list, bool sizes) {
        for (size_t d = 0; d < list.size(); ++d) {
          if (list[d]->kind != ir::ExprKind::Size) continue;
          std::vector<int64_t> words{list[d]->id, c.sources[i].input, static_cast<int64_t>(d)};
          if (c.sources[i].input < 0 || !sizes) {
            known.try_emplace(list[d]->id, std::vector<int64_t>{list[d]->id, c.facts.hint(list[d])});
          } else if (auto [at, fresh] = read.try_emplace(list[d]->id, words);
                     !fresh && stage_of(c, words[1]) < stage_of(c, at->second[1])) {
            at->second = words;
          }
        }
      };
      look(ir::type_of(in.value).shape, true);
      look(in.strides, false);
    }
    std::erase_if(known, [&](const auto& k) { return stage > 0 || read.count(k.first) > 0; });
    std::erase_if(read, [&](const auto& r) { return stage_of(c, r.second[1]) != stage; });
    std::vector<Captured::Fixed> fixed = c.fixed();
    std::erase_if(fixed, [&](const Captured::Fixed& f) { return stage_of(c, f.input) != stage; });
    put({static_cast<int64_t>(fixed.size())});
    for (const Captured::Fixed& f : fixed) put({f.input, f.dim, f.size});
    std::vector<Captured::Equal> equal = c.equal();
    std::erase_if(equal, [&](const Captured::Equal& e) {
      return std::max(stage_of(c, e.input), stage_of(c, e.other_input)) != stage;
    });
    put({static_cast<int64_t>(equal.size())});
    for (const Captured::Equal& e : equal) put({e.input, e.dim, e.other_input, e.other_dim});
    for (const auto* list : {&read, &known}) {
      put({static_cast<int64_t>(list->size())});
      for (const auto& [id, words] : *list) put(words);
    }
  }

  const std::vector<InputType>& inputs_;
  const std::vector<OutputType>& outputs_;
  Memory memory_;
  Words words_;
  Store store_;
  int64_t stages_ = 0;      // of all variants
  size_t own_symbols_ = 0;  // the most that inputs of a variant have: what follows has the same numbers in all
  std::map<std::string, Prepared> prepared_;
  bool fixed_ = true;
  int64_t memory_bytes_ = 0;  // the most that a variant has behind its words
  int64_t prepared_bytes_ = 0;
};

}  // namespace

Sections write_sections(const std::vector<InputType>& inputs, const std::vector<OutputType>& outputs,
                        const std::vector<StateTensor>& state, const std::vector<Variant>& variants, bool gpu) {
  return Writer(inputs, outputs, state, variants, gpu).sections();
}

}  // namespace brasa::exporting
