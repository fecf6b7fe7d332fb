#include "compiler/run/ahead.h"

#include <algorithm>
#include <exception>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/run/compiled.h"
#include "runtime/spans.h"

namespace brasa::compiler {

namespace {
constexpr size_t kNever = std::numeric_limits<size_t>::max();
}

RunAhead::~RunAhead() = default;

// How many of the first inputs a step needs; kNever where it writes what others see, needs a number or a size, or where the host
// has a part in it.
size_t CompiledGraph::inputs_needed(const Step& s) const {
  if (s.library || !s.numbers.empty() || !s.sizes.empty()) return kNever;
  size_t needed = 0;
  for (size_t i = 0; i < s.buffers.size(); ++i) {
    const Buffer& b = buffers_[s.buffers[i]];
    if (!b.offset.code().empty() || (b.kind != Place::Arena && i >= s.first_written)) return kNever;
    if (b.kind == Place::Input) needed = std::max(needed, static_cast<size_t>(b.index) + 1);
  }
  return needed;
}

void CompiledGraph::plan_ahead() {
  input_buffers_.assign(parts_.by_value.size(), -1);
  for (size_t b = 0; b < buffers_.size(); ++b)
    if (buffers_[b].kind == Place::Input) input_buffers_[buffers_[b].index] = static_cast<int>(b);
  size_t needed = arena_bytes_.code().empty() && parts_.prepared_of.symbols.empty() ? 0 : kNever;
  // What is prepared is there already.
  if (needed == 0) needs_.assign(parts_.prepared, 0);
  for (size_t b = parts_.prepared; b < parts_.batches.size(); ++b) {
    const Batch& batch = parts_.batches[b];
    for (size_t s = batch.begin; s < batch.end; ++s) needed = std::max(needed, inputs_needed(parts_.steps[s]));
    if (needed == kNever) break;
    needs_.push_back(needed);
  }
}

bool CompiledGraph::takes_ahead(size_t i, const Operand& input, const runtime::Device& place) const {
  return i < parts_.by_value.size() && (parts_.by_value[i] || (&place == &device_ && takes_address(input.data)));
}

namespace {
bool begins_with(std::span<const Operand> inputs, std::span<const Operand> first) {
  auto same = [](const Operand& a, const Operand& b) { return a.data == b.data; };
  return std::equal(first.begin(), first.end(), inputs.begin(), same);
}
}  // namespace

class CompiledGraph::Ahead final : public RunAhead {
 public:
  explicit Ahead(std::shared_ptr<const CompiledGraph> graph)
      : graph_(std::move(graph)), inputs_(graph_->parts_.by_value.size()) {}

  ~Ahead() override { graph_->prepared_.give_back(std::move(prepared_)); }
  Ahead(const Ahead&) = delete;
  Ahead& operator=(const Ahead&) = delete;

  const Executable& executable() const override { return *graph_; }

  void add(const Operand& input, const runtime::Device& place) override {
    const CompiledGraph& g = *graph_;
    if (stopped_) return;
    stopped_ = runtime::recording_spans() || !g.takes_ahead(count_, input, place) ||
               (arena_ && arena_->stream != runtime::current_stream(g.device_));
    if (stopped_) return;
    inputs_[count_].data = input.data;
    inputs_[count_].content = input.content;
    if (arena_ && g.input_buffers_[count_] >= 0) buffers_[g.input_buffers_[count_]] = input.data;
    ++count_;
    if (prepared_ && !has_content(count_ - 1)) return give_up();
    if (done_ == g.needs_.size() || g.needs_[done_] > count_) return;
    try {
      go_on();
    } catch (const OutOfMemoryError&) {
      give_up();  // more may be free when the run is due
    } catch (...) {
      stopped_ = true;
      error_ = std::current_exception();
    }
  }

  void finish(const int64_t* symbols, std::span<const Operand> inputs, std::span<const Operand> outputs) override {
    const CompiledGraph& g = *graph_;
    if (error_) std::rethrow_exception(error_);
    bool counts = done_ > 0 && arena_->stream == runtime::current_stream(g.device_) &&
                  begins_with(inputs, std::span(inputs_).first(count_)) && g.takes(inputs, outputs) &&
                  (!prepared_ || PreparedValues::contents(g.parts_.prepared_of, symbols, inputs) == prepared_->of);
    if (counts) {
      Symbols all;
      g.run_from(done_, *arena_, g.with_defined(symbols, all), inputs, outputs, prepared());
      if (prepared_) g.keep_prepared(std::exchange(prepared_, nullptr), symbols, inputs);
      return;
    }
    give_up();
    g.run(symbols, inputs, outputs);
  }

 private:
  void go_on() {
    const CompiledGraph& g = *graph_;
    if (!arena_) {
      runtime::Stream stream = runtime::current_stream(g.device_);
      if (g.parts_.prepared) {
        prepared_ = g.prepared_.take(stream);
        if (!prepared_) return give_up();
        for (size_t i = 0; i < count_; ++i)
          if (!has_content(i)) return give_up();
      }
      done_ = g.parts_.prepared;
      arena_.emplace(g.device_, static_cast<size_t>(g.arena_bytes_(nullptr)), stream);
      buffers_.resize(g.buffers_.size());
      g.find_buffers(arena_->data, nullptr, inputs_, {}, buffers_.data(), prepared());
    }
    Run r{nullptr, inputs_, buffers_.data(), arena_->stream};
    for (; done_ < g.needs_.size() && g.needs_[done_] <= count_; ++done_) g.launch(g.parts_.batches[done_], r);
  }
  // Whether what is prepared was made of this input, if it was made of such a one.
  bool has_content(size_t input) const {
    const std::vector<uint32_t>& of = graph_->parts_.prepared_of.inputs;
    auto it = std::lower_bound(of.begin(), of.end(), input);
    if (it == of.end() || *it != input) return true;
    auto at = prepared_->of.begin() + 2 * (it - of.begin());
    return at[0] == inputs_[input].content && at[1] == reinterpret_cast<uintptr_t>(inputs_[input].data);
  }
  const std::byte* prepared() const { return prepared_ ? prepared_->memory.data : nullptr; }
  void give_up() {
    stopped_ = true;
    done_ = 0;
    arena_.reset();
    graph_->prepared_.give_back(std::exchange(prepared_, nullptr));
  }

  std::shared_ptr<const CompiledGraph> graph_;
  std::vector<Operand> inputs_;  // the first count_ are known
  size_t count_ = 0;
  std::vector<void*> buffers_;
  std::optional<Memory> arena_;
  std::shared_ptr<PreparedValues::Made> prepared_;  // as it was when this began
  size_t done_ = 0;                                 // batches
  bool stopped_ = false;
  std::exception_ptr error_;
};

// Of a run that is kept: its first part at once, when the inputs are there that it needs.
class CompiledGraph::KeptAhead final : public RunAhead {
 public:
  explicit KeptAhead(std::shared_ptr<const CompiledGraph> graph) : graph_(std::move(graph)) {
    inputs_.reserve(needed());
  }

  const Executable& executable() const override { return *graph_; }

  void add(const Operand& input, const runtime::Device& place) override {
    if (stopped_) return;
    const CompiledGraph& g = *graph_;
    stopped_ = runtime::recording_spans() || !g.takes_ahead(inputs_.size(), input, place);
    if (stopped_) return;
    inputs_.emplace_back().data = input.data;
    stopped_ = inputs_.size() >= needed();
    if (stopped_) begin();
  }

  void finish(const int64_t* symbols, std::span<const Operand> inputs, std::span<const Operand> outputs) override {
    const CompiledGraph& g = *graph_;
    if (error_) std::rethrow_exception(error_);
    bool counts = begun_ && stream_ == runtime::current_stream(g.device_) && begins_with(inputs, inputs_);
    Symbols all;
    g.run_with_defined(g.with_defined(symbols, all), inputs, outputs, counts ? begun_ : std::nullopt);
  }

 private:
  size_t needed() const { return graph_->needs_.back(); }
  void begin() {
    const CompiledGraph& g = *graph_;
    stream_ = runtime::current_stream(g.device_);
    run_ = g.kept_.known(stream_);
    if (!run_) return;
    Slots given;
    g.add_addresses(inputs_, given);
    std::lock_guard lock(run_->mutex());
    try {
      begun_ = run_->begin(given);
    } catch (...) {
      error_ = std::current_exception();
    }
  }

  std::shared_ptr<const CompiledGraph> graph_;
  std::vector<Operand> inputs_;  // the first ones
  std::shared_ptr<KeptRun> run_;
  std::optional<KeptRun::Begun> begun_;
  runtime::Stream stream_ = {};
  bool stopped_ = false;
  std::exception_ptr error_;
};

std::unique_ptr<RunAhead> run_ahead(std::shared_ptr<const Executable> executable) {
  auto graph = std::dynamic_pointer_cast<const CompiledGraph>(executable);
  if (!graph || graph->needs_.empty()) return nullptr;
  if (graph->keeper_) return std::make_unique<CompiledGraph::KeptAhead>(std::move(graph));
  return std::make_unique<CompiledGraph::Ahead>(std::move(graph));
}

}  // namespace brasa::compiler
