#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/libraries/alone.h"
#include "compiler/libraries/body.h"
#include "compiler/pipeline.h"
#include "export/alone/sizes.h"

namespace brasa::exporting {

using Words = std::vector<int64_t>;

/// What all variants of a program share: the kernels' code, and texts.
class Store {
 public:
  explicit Store(bool gpu) : gpu_(gpu) {}
  std::string code, text;
  Words modules, kernels;  // of a GPU: {level, place of the text, of machine code or -1}, {module, name}
  bool calls = false;      // functions of the runtime
  // Of a GPU: the functions of libraries that are called, a bit for each, and how many calls there are.
  int64_t libraries = 0, library_calls = 0;
  bool gpu() const { return gpu_; }
  int64_t text_at(std::string_view s);
  /// Adds the code; where each kernel is, by Step::code: a place in the code, or a number of `kernels`.
  Words add(const compiler::Portable& p, int level);
  /// Where the tables for transforms of this length lie in the code.
  int64_t fourier_tables(int64_t length);

 private:
  int64_t add_module(const runtime::KernelImage& image, int level);
  int64_t place_for(std::string_view bytes);
  bool gpu_;
  std::map<std::string, int64_t, std::less<>> texts_;
  std::map<int64_t, int64_t> tables_;
  std::multimap<uint64_t, size_t> places_;  // of code, by hash
};

/// Adds a size whose symbols are counted from `first_symbol`.
void put_size(Words& to, const compiler::SizeProgram& p, int64_t first_symbol = 0);

/// The steps of a variant's stages as words (alone/runtime.h says which), those of its loops and branches inside of them. The symbols and the memory of
/// their bodies lie behind those of what they stand in, and those of a stage behind what the stages before it keep.
class StepWriter {
 public:
  /// The buffer of an input or output of the stage, or of what it prepares.
  using Flat = std::function<int64_t(const compiler::Place&)>;
  StepWriter(Store& store, size_t symbols, int level)
      : store_(store),
        level_(level),
        own_symbols_(static_cast<int64_t>(symbols)),
        symbols_(own_symbols_),
        known_(symbols, Known{size_range(0, INT64_MAX), false}) {}

  /// What is known of a symbol before a run. `always`: whatever the inputs' sizes are.
  struct Known {
    SizeRange range;
    bool always;
  };
  void know(size_t symbol, Known known) { known_[symbol] = known; }
  /// Of a size that is made of symbols which are known.
  Known known(const compiler::SizeProgram& p, int64_t first_symbol = 0) const;

  /// From here on `sizes`, `buffers` and `steps` are those of another stage.
  void begin_stage();
  /// The buffer of what lies outside of the arena.
  int64_t outside(int64_t from, int64_t where);
  /// The buffer of so many bytes, which later stages leave as they are.
  int64_t keep(const compiler::SizeProgram& bytes);
  /// `once`: the number of what it prepares, among all of the program's.
  void write(const compiler::Portable& p, size_t once, const Flat& outside);

  Words sizes, buffers, steps;  // of the stage, each with its count, or its words, in front
  int64_t symbols() const { return symbols_; }
  int64_t buffer_count() const { return buffer_count_; }
  int64_t values() const { return values_; }
  int64_t slots() const { return slots_; }
  /// The most of the arena and of one thread's scratch, where that does not vary with the inputs' sizes; else -1.
  int64_t memory() const { return fixed_ ? arena_ + scratch_ : -1; }
  /// Whether there is no bound to what stages and their steps need.
  bool unbounded() const { return unbounded_; }

 private:
  // Steps and what they stand in.
  struct Scope {
    const compiler::Portable& of;
    int64_t symbols, end;       // where its own begin and end
    std::vector<int64_t> flat;  // its buffers among all
  };
  /// Gives the words of those that prepare, which are the first.
  int64_t all(const compiler::Portable& p, int64_t first_symbol, int64_t end_symbol, int64_t arena,
              const Flat& outside);
  void kernel(const Scope& in, const compiler::Step& s, const Words& places);
  void call(const Scope& in, const compiler::Step& s, const compiler::AloneCall& call, int64_t behind);
  int64_t tables_for(const compiler::SizeProgram& length);
  void flow(const Scope& in, const compiler::Step& s, int64_t behind);
  void branch(const Scope& in, const compiler::Step& s, const compiler::Flow& f, int64_t behind);
  void loop(const Scope& in, const compiler::Step& s, const compiler::Flow& f, int64_t behind);
  void while_loop(const Scope& in, const compiler::Step& s, const compiler::Flow& f, int64_t behind);
  struct BodyWords {
    int64_t prepare, rest;
  };
  BodyWords body(const Scope& in, const compiler::CompiledBody& b, int64_t behind, const Flat& outside);
  size_t begin(int64_t kind);
  void end_head(size_t head);

  void put(std::initializer_list<int64_t> words) { steps.insert(steps.end(), words); }
  void put(const Words& words) { steps.insert(steps.end(), words.begin(), words.end()); }
  void size(Words& to, const compiler::SizeProgram& p, int64_t first_symbol);
  /// Memory behind a symbol's; gives the symbol of its end.
  int64_t memory_behind(int64_t symbol, const compiler::SizeProgram& bytes, int64_t first_symbol);
  int64_t define(int64_t behind, const compiler::SizeProgram& p, int64_t first_symbol);
  void need(int64_t& most, Known bytes);
  int64_t moving_buffer();
  int64_t arena_buffer(int64_t behind, const compiler::SizeProgram& offset, int64_t first_symbol);

  Store& store_;
  int level_;
  int64_t own_symbols_, symbols_, buffer_count_ = 0, values_ = 0, slots_ = 0;
  int64_t defined_ = 0, first_buffer_ = 0;  // of the stage
  int64_t behind_ = -1;                     // what is kept
  std::vector<Known> known_;                // by symbol
  bool fixed_ = true, unbounded_ = false;
  int64_t arena_ = 0, scratch_ = 0;
};

}  // namespace brasa::exporting
