#include "export/steps.h"

#include <algorithm>
#include <iterator>
#include <span>

#include "export/alone/runtime.h"
#include "export/alone/tables.h"
#include "export/files.h"
#include "support/error.h"
#include "support/hash.h"

namespace brasa::exporting {

using compiler::CompiledBody;
using compiler::Flow;
using compiler::Place;
using compiler::Portable;
using compiler::SizeProgram;
using compiler::Step;

namespace {

int64_t aligned(int64_t n) { return (n + 63) / 64 * 64; }

// Kernels begin at multiples of this.
constexpr size_t kAlign = 64;
// Of a step kOnce, before the steps inside.
constexpr int64_t kOnceWords = 5;

#define NAME(function) #function,
constexpr std::string_view kFunctions[] = {ALONE_FUNCTIONS(NAME)},
                           kLibraryFunctions[] = {ALONE_LIBRARY_FUNCTIONS(NAME)};
#undef NAME

}  // namespace

int64_t Store::text_at(std::string_view s) {
  auto [it, fresh] = texts_.try_emplace(std::string(s), static_cast<int64_t>(text.size()));
  if (fresh) (text += s) += '\0';
  return it->second;
}

// Variants have kernels in common.
int64_t Store::place_for(std::string_view bytes) {
  uint64_t hash = hash_bytes(bytes.data(), bytes.size());
  for (auto [at, end] = places_.equal_range(hash); at != end; ++at)
    if (code.compare(at->second, bytes.size(), bytes) == 0) return static_cast<int64_t>(at->second);
  code.resize((code.size() + kAlign - 1) / kAlign * kAlign);
  places_.emplace(hash, code.size());
  code += bytes;
  return static_cast<int64_t>(code.size() - bytes.size());
}

int64_t Store::add_module(const runtime::KernelImage& image, int level) {
  bool emulated = !image.target.starts_with("nvptx");
  std::string form = emulated ? image.serialize() : std::string(image.code.begin(), image.code.end()) + '\0';
  std::string machine = emulated ? "" : machine_code(form.c_str(), str("sm_", level));
  modules.insert(modules.end(), {level, place_for(form), machine.empty() ? -1 : place_for(machine)});
  return static_cast<int64_t>(modules.size()) / 3 - 1;
}

int64_t Store::fourier_tables(int64_t length) {
  auto [it, fresh] = tables_.try_emplace(length, -1);
  if (!fresh) return it->second;
  std::string bytes(alone_fourier_bytes(length), '\0');
  BRASA_CHECK(alone_fourier_tables(length, bytes.data()), "export: there is no memory for the tables of a transform");
  return it->second = place_for(bytes);
}

Words Store::add(const Portable& p, int level) {
  Words images, out;
  for (const runtime::KernelImage& image : p.images)
    images.push_back(gpu_ ? add_module(image, level)
                          : place_for({reinterpret_cast<const char*>(image.code.data()), image.code.size()}));
  for (size_t k = 0; k < p.kernels.size(); ++k) {
    const Portable::Entry& entry = p.kernels[k];
    out.push_back(gpu_ ? static_cast<int64_t>(kernels.size()) / 2
                       : images[entry.image] + static_cast<int64_t>(entry.offset));
    if (gpu_) kernels.insert(kernels.end(), {images[entry.image], text_at(str("k", k))});
  }
  return out;
}

void put_size(Words& to, const SizeProgram& p, int64_t first_symbol) {
  to.push_back(static_cast<int64_t>(p.code().size()));
  if (p.code().empty()) to.push_back(p.constant());
  for (const SizeProgram::Instruction& i : p.code()) {
    to.push_back(static_cast<int64_t>(i.op) + (i.number ? 256 : 0) + (static_cast<int64_t>(i.a) << 16));
    to.push_back(i.op == SizeProgram::Symbol ? i.b + first_symbol : i.b);
  }
}

void StepWriter::size(Words& to, const SizeProgram& p, int64_t first_symbol) {
  put_size(to, p, first_symbol);
  values_ = std::max(values_, static_cast<int64_t>(p.code().size()));
}

StepWriter::Known StepWriter::known(const SizeProgram& p, int64_t first_symbol) const {
  Words words;
  put_size(words, p);
  bool always = true;
  std::vector<SizeRange> symbols, values(p.code().size());
  for (size_t s = static_cast<size_t>(first_symbol); s < known_.size(); ++s) symbols.push_back(known_[s].range);
  for (const SizeProgram::Instruction& i : p.code())
    if (i.op == SizeProgram::Symbol) always = always && known_[static_cast<size_t>(i.b + first_symbol)].always;
  const int64_t* at = words.data();
  return {range_at(&at, symbols.data(), values.data()), always};
}

int64_t StepWriter::define(int64_t behind, const SizeProgram& p, int64_t first_symbol) {
  ++defined_;
  sizes.insert(sizes.end(), {symbols_, behind});
  size(sizes, p, first_symbol);
  known_.push_back(known(p, first_symbol));
  return symbols_++;
}

void StepWriter::need(int64_t& most, Known bytes) {
  constexpr int64_t kNobodyHas = int64_t{1} << 60;
  unbounded_ = unbounded_ || bytes.range.high >= kNobodyHas;
  fixed_ = fixed_ && bytes.always;
  most = std::max(most, bytes.range.high);
}

int64_t StepWriter::memory_behind(int64_t symbol, const SizeProgram& bytes, int64_t first_symbol) {
  int64_t end = define(symbol, bytes, first_symbol);
  Known &begin = known_[static_cast<size_t>(symbol)], &last = known_[static_cast<size_t>(end)];
  int64_t size = std::max<int64_t>(std::min(last.range.high, INT64_MAX - 63), 0),
          at = sum_of(begin.range.high, aligned(size));
  last = {size_range(at, at), last.always && begin.always};
  need(arena_, last);
  return end;
}

int64_t StepWriter::moving_buffer() {
  buffers.insert(buffers.end(), {kFromLoop, 0, 0});
  return buffer_count_++;
}

int64_t StepWriter::arena_buffer(int64_t behind, const SizeProgram& offset, int64_t first_symbol) {
  buffers.insert(buffers.end(), {kFromArena, behind});
  size(buffers, offset, first_symbol);
  return buffer_count_++;
}

void StepWriter::begin_stage() {
  sizes.clear();
  buffers.clear();
  steps.clear();
  defined_ = 0;
  first_buffer_ = buffer_count_;
  if (behind_ < 0) behind_ = define(-1, SizeProgram(), 0);
}

int64_t StepWriter::outside(int64_t from, int64_t where) {
  buffers.insert(buffers.end(), {from, 0, where});
  return buffer_count_++;
}

int64_t StepWriter::keep(const SizeProgram& bytes) {
  int64_t buffer = arena_buffer(behind_, SizeProgram(), 0);
  behind_ = memory_behind(behind_, bytes, 0);
  return buffer;
}

void StepWriter::write(const Portable& p, size_t number, const Flat& outside) {
  size_t once = begin(kOnce);
  put({0, 0, static_cast<int64_t>(number)});
  end_head(once);
  steps[once] = all(p, 0, own_symbols_, behind_, outside);
  if (!p.parts.prepared) steps.erase(steps.begin(), steps.begin() + kOnceWords);
  sizes.insert(sizes.begin(), defined_);
  buffers.insert(buffers.begin(), buffer_count_ - first_buffer_);
  steps.insert(steps.begin(), static_cast<int64_t>(steps.size()));
}

int64_t StepWriter::all(const Portable& p, int64_t first_symbol, int64_t end_symbol, int64_t arena,
                        const Flat& outside) {
  Scope scope{p, first_symbol, end_symbol, {}};
  int64_t behind = memory_behind(arena, SizeProgram(p.parts.arena_bytes), first_symbol);
  for (const Place& place : p.parts.buffers)
    scope.flat.push_back(place.kind == Place::Arena ? arena_buffer(arena, SizeProgram(place.offset), first_symbol)
                                                    : outside(place));
  Words places = store_.add(p, level_);
  int64_t note = p.note < 0 ? -1 : places[p.note];
  if (note >= 0) slots_ = std::max<int64_t>(slots_, 3);  // the truth, where to, and which
  auto checks = [&](size_t after) {
    for (const auto& c : p.parts.checks)
      if (c.after == after) put({kCheck, scope.flat[c.buffer], store_.text_at(c.message), note});
  };
  auto step = [&](size_t i) {
    const Step& s = p.parts.steps[i];
    BRASA_ASSERT(!s.library && s.numbers.empty(), "a step of a portable plan is a library's");
    if (const auto* alone = dynamic_cast<const compiler::AloneCall*>(s.call.get()))
      call(scope, s, *alone, behind);
    else if (s.call)
      flow(scope, s, behind);
    else
      kernel(scope, s, places);
    checks(i);
  };
  size_t before = steps.size(), prepared = p.parts.prepared ? p.parts.batches[p.parts.prepared - 1].end : 0;
  for (size_t i = 0; i < prepared; ++i) step(i);
  auto words = static_cast<int64_t>(steps.size() - before);
  checks(static_cast<size_t>(-1));
  for (size_t i = prepared; i < p.parts.steps.size(); ++i) step(i);
  return words;
}

void StepWriter::kernel(const Scope& in, const Step& s, const Words& places) {
  put({kKernel, places[s.code], static_cast<int64_t>(s.buffers.size())});
  for (int b : s.buffers) put({in.flat[b]});
  put({static_cast<int64_t>(s.sizes.size())});
  for (uint32_t id : s.sizes) {
    BRASA_ASSERT(in.symbols + id < in.end, "a kernel takes a symbol that nothing defines");
    put({in.symbols + id});
  }
  slots_ = std::max(slots_, static_cast<int64_t>(s.buffers.size() + s.sizes.size()));
  size(steps, s.count, in.symbols);
  size(steps, s.scratch, in.symbols);
  Known scratch = known(s.scratch, in.symbols);
  scratch.range.high = aligned(std::min(scratch.range.high, INT64_MAX - 63));
  need(scratch_, scratch);
  put({std::max<int64_t>(store_.gpu() ? s.threads : s.grain, 1)});
}

void StepWriter::call(const Scope& in, const Step& s, const compiler::AloneCall& call, int64_t behind) {
  int64_t work = arena_buffer(behind, SizeProgram(), 0);
  memory_behind(behind, call.work, in.symbols);
  std::span<const std::string_view> all = kFunctions;
  if (store_.gpu()) all = kLibraryFunctions;
  int64_t function = std::find(all.begin(), all.end(), call.function) - all.begin();
  BRASA_ASSERT(function < std::ssize(all), "programs that run alone have no function ", call.function);
  BRASA_ASSERT(call.tensors.size() <= kMostTensors && call.sizes.size() <= kMostSizes, "a call of ", call.function,
               " has more tensors or sizes than the runtime keeps");
  store_.calls = true;
  size_t head = begin(kCall);
  put({0, 0, function, work, static_cast<int64_t>(call.tensors.size())});
  for (size_t t : call.tensors) put({in.flat[s.buffers[t]]});
  Words facts = call.facts;
  if (call.function == "fft") facts.push_back(tables_for(call.sizes[1]));
  if (store_.gpu()) {
    store_.libraries |= int64_t{1} << function;
    facts.insert(facts.begin(), store_.library_calls++);
  }
  put({static_cast<int64_t>(facts.size())});
  put(facts);
  put({static_cast<int64_t>(call.sizes.size())});
  for (const SizeProgram& p : call.sizes) size(steps, p, in.symbols);
  end_head(head);
}

// Made here where the length is known, and in each call where it is not, or where they would make a large file.
int64_t StepWriter::tables_for(const SizeProgram& length) {
  constexpr int64_t kLongest = 1 << 16;
  bool known = length.code().empty() && length.constant() > 0 && length.constant() <= kLongest;
  return known ? store_.fourier_tables(length.constant()) : -1;
}

void StepWriter::flow(const Scope& in, const Step& s, int64_t behind) {
  const auto* call = dynamic_cast<const compiler::BodyCall*>(s.call.get());
  BRASA_ASSERT(call, "a call in a portable plan is no control flow");
  const Flow& f = call->flow();
  switch (f.kind) {
    case Flow::Kind::Branch: return branch(in, s, f, behind);
    case Flow::Kind::Loop: return loop(in, s, f, behind);
    case Flow::Kind::While: return while_loop(in, s, f, behind);
  }
}

// A step with others inside: its kind, how long its head is, and the head.
size_t StepWriter::begin(int64_t kind) {
  put({kind, 0});
  return steps.size();
}
void StepWriter::end_head(size_t head) { steps[head - 1] = static_cast<int64_t>(steps.size() - head); }

StepWriter::BodyWords StepWriter::body(const Scope& in, const CompiledBody& b, int64_t behind, const Flat& outside) {
  int64_t first = symbols_, end, kept = behind;
  for (const SizeProgram& p : b.sizes()) define(-1, p, in.symbols);
  end = symbols_;
  const compiler::CompiledGraph::Parts& parts = b.portable().parts;
  if (parts.prepared) behind = memory_behind(kept, SizeProgram(parts.prepared_bytes), first);
  size_t before = steps.size();
  int64_t prepare = all(b.portable(), first, end, behind, [&](const Place& p) {
    return p.kind == Place::Prepared ? arena_buffer(kept, SizeProgram(p.offset), first) : outside(p);
  });
  return {prepare, static_cast<int64_t>(steps.size() - before) - prepare};
}

void StepWriter::branch(const Scope& in, const Step& s, const Flow& f, int64_t behind) {
  size_t head = begin(kBranch);
  put({0, 0, in.flat[s.buffers[f.predicate]]});
  end_head(head);
  for (size_t side : {0, 1})
    steps[head + side] =
        body(in, f.bodies[side], behind, [&](const Place& p) {
          return in.flat[s.buffers[(p.kind == Place::Input ? f.operands : f.results)[p.index].position]];
        }).rest;
}

void StepWriter::loop(const Scope& in, const Step& s, const Flow& f, int64_t behind) {
  size_t head = begin(kLoop);
  put({0, 0});
  size(steps, f.steps, in.symbols);
  put({f.reverse});
  auto outer = [&](const Flow::Tensor& t) { return in.flat[s.buffers[t.position]]; };
  auto states = static_cast<int64_t>(std::count_if(f.results.begin(), f.results.end(),
                                                   [](const Flow::Tensor& t) { return t.use == Flow::Use::State; }));
  put({states});
  for (int64_t i = 0; i < states; ++i) {  // the states are the first ones on both sides
    put({outer(f.operands[i]), outer(f.results[i])});
    size(steps, f.results[i].bytes, in.symbols);
  }
  std::vector<int64_t> inner;
  Words moves;
  auto moving = [&](const Flow::Tensor& t, int64_t of, bool later) {
    inner.push_back(moving_buffer());
    moves.insert(moves.end(), {inner.back(), of, later});
    size(moves, t.bytes, in.symbols);
  };
  int64_t count = 0;
  for (size_t i = 0; i < f.operands.size(); ++i) {
    const Flow::Tensor& t = f.operands[i];
    if (t.use == Flow::Use::Whole) {
      inner.push_back(outer(t));
      continue;
    }
    bool state = t.use == Flow::Use::State;
    moving(t, outer(state ? f.results[i] : t), state && f.reverse);
    ++count;
  }
  for (const Flow::Tensor& t : f.results) moving(t, outer(t), t.use == Flow::Use::State && !f.reverse);
  put({count + static_cast<int64_t>(f.results.size())});
  steps.insert(steps.end(), moves.begin(), moves.end());
  end_head(head);
  BodyWords words = body(in, f.bodies[0], behind, [&](const Place& p) {
    return inner[p.kind == Place::Input ? p.index : static_cast<int>(f.operands.size()) + p.index];
  });
  steps[head] = words.prepare;
  steps[head + 1] = words.rest;
}

void StepWriter::while_loop(const Scope& in, const Step& s, const Flow& f, int64_t behind) {
  size_t head = begin(kWhile);
  int64_t truth = arena_buffer(behind, SizeProgram(), 0);
  behind = memory_behind(behind, SizeProgram(ir::Expr(1)), 0);
  put({0, 0, truth, static_cast<int64_t>(f.results.size())});
  auto outer = [&](const Flow::Tensor& t) { return in.flat[s.buffers[t.position]]; };
  std::vector<int64_t> now, next;
  for (size_t i = 0; i < f.operands.size(); ++i) {
    if (i >= f.results.size()) {
      now.push_back(outer(f.operands[i]));
      continue;
    }
    int64_t second = arena_buffer(behind, SizeProgram(), 0);
    behind = memory_behind(behind, f.results[i].bytes, in.symbols);
    now.push_back(moving_buffer());
    next.push_back(moving_buffer());
    put({outer(f.operands[i]), outer(f.results[i]), second, now[i], next[i]});
    size(steps, f.results[i].bytes, in.symbols);
  }
  end_head(head);
  auto condition = [&](const Place& p) { return p.kind == Place::Input ? now[p.index] : truth; };
  auto step = [&](const Place& p) { return p.kind == Place::Input ? now[p.index] : next[p.index]; };
  steps[head] = body(in, f.bodies[0], behind, condition).rest;
  steps[head + 1] = body(in, f.bodies[1], behind, step).rest;
}

}  // namespace brasa::exporting
