#include "export/words.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "export/alone/runtime.h"
#include "export/alone/weights.h"
#include "export/steps.h"
#include "support/error.h"
#include "support/hash.h"

namespace brasa::exporting {

using compiler::Place;
using compiler::SizeProgram;

namespace {

constexpr int64_t kAlign = 64;
constexpr int64_t kMostWords = 512;  // of symbols and instructions, on the runtime's stack

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
      : outputs_(outputs), memory_(state, variants), store_(gpu) {
    words_.resize(kFirstVariant + variants.size());
    words_[kVersion] = kPlanVersion;
    words_[kInputs] = static_cast<int64_t>(inputs.size());
    words_[kOutputs] = static_cast<int64_t>(outputs.size());
    words_[kVariants] = static_cast<int64_t>(variants.size());
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
      variant(variants[v], v);
    }
    table(kModules, kModuleAt, store_.modules, 3);
    table(kKernels, kKernelAt, store_.kernels, 2);
    words_[kLibraries] = store_.libraries;
    words_[kCalls] = store_.library_calls;
    words_[kWeightBytes] = static_cast<int64_t>(memory_.bytes.size());
    words_[kWeightId] = memory_.id;
    words_[kStateBytes] = memory_.state_bytes;
    words_[kPreparedBytes] = prepared_bytes_;
    BRASA_CHECK(words_[kSymbols] + words_[kValues] <= kMostWords, "export: the program's sizes are expressions of ",
                words_[kValues], " operations, of which ", kMostWords - words_[kSymbols], " have room");
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
      int64_t words = s.gpu ? 0 : words_[kBuffers] + words_[kSymbols] + words_[kValues] + words_[kSlots];
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

  void variant(const Variant& v, size_t number) {
    const ir::Graph& graph = *v.captured->graph;
    put({v.level});
    size_t symbols = put_symbols(*v.captured);
    put({static_cast<int64_t>(v.facts.size())});
    for (const ir::Fact& f : v.facts) {
      put({f.equal});
      size(SizeProgram(f.left));
      size(SizeProgram(f.right));
    }
    std::vector<const ir::Type*> fresh;
    for (const ir::Output& o : graph.outputs())
      if (o.check.empty() && o.into < 0) fresh.push_back(&ir::type_of(o.value));
    std::vector<int64_t> result(fresh.size());
    for (size_t r = 0; r < outputs_.size(); ++r) result[v.captured->outputs[r]] = static_cast<int64_t>(r);
    StepWriter steps(store_, symbols, v.level);
    // Behind a byte for each variant; its sizes are those of weights, which are known.
    if (v.code.parts.prepared && !prepared_bytes_) prepared_bytes_ = aligned(words_[kVariants]);
    int64_t prepared = prepared_bytes_;
    steps.write(v.code, number, [&](const Place& p) -> std::pair<int64_t, int64_t> {
      switch (p.kind) {
        case Place::Output: return {kFromOutput, result[p.index]};
        case Place::Prepared: return {kFromPrepared, prepared + v.captured->facts.hint(p.offset)};
        default: return memory_.place(v.captured->sources[p.index]);
      }
    });
    if (v.code.parts.prepared) prepared_bytes_ += aligned(v.captured->facts.hint(v.code.parts.prepared_bytes));
    put(steps.sizes);
    for (size_t r = 0; r < outputs_.size(); ++r)
      for (ir::Expr e : fresh[v.captured->outputs[r]]->shape) size(SizeProgram(e));
    put(steps.buffers);
    put(steps.steps);
    most(kSymbols, static_cast<size_t>(steps.symbols()));
    most(kValues, static_cast<size_t>(steps.values()));
    most(kSlots, static_cast<size_t>(steps.slots()));
    most(kBuffers, static_cast<size_t>(steps.buffer_count()));
    fixed_ = fixed_ && steps.memory() >= 0;
    memory_bytes_ = std::max(memory_bytes_, steps.memory());
  }

  // From sizes of inputs; those of constants are known.
  size_t put_symbols(const Captured& c) {
    uint32_t count = 0;
    std::map<uint32_t, std::vector<int64_t>> read, known;
    for (size_t i = 0; i < c.sources.size(); ++i) {
      const ir::Input& in = c.graph->inputs()[i];
      auto look = [&](const std::vector<ir::Expr>& list, bool sizes) {
        for (size_t d = 0; d < list.size(); ++d) {
          if (list[d]->kind != ir::ExprKind::Size) continue;
          count = std::max(count, list[d]->id + 1);
          if (c.sources[i].input >= 0 && sizes)
            read.try_emplace(list[d]->id,
                             std::vector<int64_t>{list[d]->id, c.sources[i].input, static_cast<int64_t>(d)});
          else
            known.try_emplace(list[d]->id, std::vector<int64_t>{list[d]->id, c.facts.hint(list[d])});
        }
      };
      look(ir::type_of(in.value).shape, true);
      look(in.strides, false);
    }
    std::vector<Captured::Fixed> fixed = c.fixed();
    put({static_cast<int64_t>(fixed.size())});
    for (const Captured::Fixed& f : fixed) put({f.input, f.dim, f.size});
    std::vector<Captured::Equal> equal = c.equal();
    put({static_cast<int64_t>(equal.size())});
    for (const Captured::Equal& e : equal) put({e.input, e.dim, e.other_input, e.other_dim});
    put({static_cast<int64_t>(read.size())});
    for (auto& [id, words] : read) words_.insert(words_.end(), words.begin(), words.end());
    std::erase_if(known, [&](const auto& k) { return read.count(k.first) > 0; });
    put({static_cast<int64_t>(known.size())});
    for (auto& [id, words] : known) words_.insert(words_.end(), words.begin(), words.end());
    return count;
  }

  const std::vector<OutputType>& outputs_;
  Memory memory_;
  Words words_;
  Store store_;
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
