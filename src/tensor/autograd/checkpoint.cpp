#include "tensor/autograd/checkpoint.h"

#include <algorithm>
#include <atomic>
#include <optional>

#include <brasa/checkpoint.h>
#include <brasa/generator.h>

#include "support/error.h"
#include "tensor/autocast.h"
#include "tensor/autograd/packed.h"
#include "tensor/recorder.h"

namespace brasa::autograd {

namespace {

thread_local const std::shared_ptr<CheckpointFrame>* saving = nullptr;
thread_local CheckpointFrame* running_again = nullptr;
thread_local uint32_t recorded = 0;  // the number of the checkpointed function that is being recorded
std::atomic<uint32_t> last_recorded{0};

}  // namespace

// One call of a checkpointed function.
class CheckpointFrame {
 public:
  CheckpointFrame(std::function<void()> again, bool rng) : again_(std::move(again)) {
    if (rng) rng_ = Stream::now();
  }

  size_t next_place() { return places_++; }
  void take_down(const Tensor& t) {
    Tensor value = shallow_copy(t);
    values_.push_back({value, impl_of(value)->storage->version()});
  }
  void forget(size_t place) {
    if (place < values_.size()) values_[place].tensor.reset();
  }

  Tensor value(size_t place, const std::string& name) {
    if (!filled_) run();
    BRASA_CHECK(place < values_.size(), "checkpoint: the function saved ", places_, " tensors for backward, but only ",
                values_.size(), " when it ran again for ", name, "; it must do the same both times");
    const Value& v = values_[place];
    BRASA_CHECK(v.tensor.defined(), "checkpoint: a value that ", name, " needs was given up already");
    uint32_t now = impl_of(v.tensor)->storage->version();
    BRASA_CHECK(now == v.version,
                "one of the variables needed for gradient computation has been modified by an inplace operation: [",
                v.tensor, "], which is needed by ", name, ", is at version ", now, "; expected version ", v.version,
                " instead, in a checkpointed function.");
    return v.tensor;
  }

 private:
  struct Value {
    Tensor tensor;
    uint32_t version;
  };
  struct Stream {
    uint64_t seed, offset;
    static Stream now() { return {default_generator().current_seed(), default_generator().offset()}; }
    void set() const {
      default_generator().set_current_seed(seed);
      default_generator().set_offset(offset);
    }
  };

  void run() {
    struct KeepStream {
      Stream outer = Stream::now();
      ~KeepStream() { outer.set(); }
    };
    values_.clear();
    Recorder::Scope eager(nullptr);
    AutoGradMode grad(true);
    eager::AutocastAs::Scope autocast(autocast_);
    // Nested calls of the function's own checkpoints are frames of their own.
    CheckpointMode again(nullptr, this);
    std::optional<KeepStream> stream;
    if (rng_) {
      stream.emplace();
      rng_->set();
    }
    again_();
    filled_ = true;
  }

  std::function<void()> again_;
  std::optional<Stream> rng_;
  eager::AutocastAs autocast_;
  size_t places_ = 0;
  bool filled_ = false;
  std::vector<Value> values_;
};

namespace {

// A value that was not kept: its number among those that the checkpointed function saves.
struct Dropped final : Elsewhere {
  Dropped(std::shared_ptr<CheckpointFrame> f, size_t p) : frame(std::move(f)), place(p) {}
  Tensor value(const std::string& name) override { return frame->value(place, name); }
  void forget() override { frame->forget(place); }
  std::shared_ptr<CheckpointFrame> frame;
  size_t place;
};

}  // namespace

std::unique_ptr<Elsewhere> drop(const Tensor& t) {
  // What a transformed function records has no value outside of it. Its operators, which run outside, save for themselves.
  if (Recorder::current()) return nullptr;
  std::unique_ptr<Elsewhere> out;
  if (saving || running_again) {
    if (t.requires_grad() && t.is_leaf()) return nullptr;
    if (running_again)
      running_again->take_down(t);
    else
      out = std::make_unique<Dropped>(*saving, (*saving)->next_place());
  } else {
    out = packed(t);
  }
  if (out && t.requires_grad()) out->edge = gradient_edge(t);
  return out;
}

bool in_checkpoint() { return saving || running_again; }

uint32_t checkpoint_number() {
  constexpr uint32_t kAround = (1u << 31) + 1;
  return recorded ? recorded : in_checkpoint() ? kAround : 0;
}

CheckpointMode::CheckpointMode(std::shared_ptr<CheckpointFrame> frame, CheckpointFrame* again)
    : frame_(std::move(frame)), saving_(saving, frame_ ? &frame_ : nullptr), running_again_(running_again, again) {}

}  // namespace brasa::autograd

namespace brasa {

// A checkpoint inside another has its own values, the first time and when the outer one runs again.
struct detail::CheckpointScope::Impl {
  Impl(std::shared_ptr<autograd::CheckpointFrame> frame, uint32_t number)
      : mode(std::move(frame), nullptr), number(autograd::recorded, number) {}
  autograd::CheckpointMode mode;
  Scoped<uint32_t> number;
};

// While a call is recorded its operators' nodes save later, or never, and another run would meet other values in their places: the compiler
// is told which calls are the function's.
detail::CheckpointScope::CheckpointScope(std::function<void()> again, const CheckpointOptions& options) {
  if (Recorder::current()) {
    // 1 to 2^31, so that it is none of the other origins of a value.
    uint32_t number = autograd::recorded ? autograd::recorded : autograd::last_recorded.fetch_add(1) % (1u << 31) + 1;
    impl_ = std::make_unique<Impl>(nullptr, number);
  } else {
    impl_ = std::make_unique<Impl>(
        std::make_shared<autograd::CheckpointFrame>(std::move(again), options.preserve_rng_state), 0);
  }
}
detail::CheckpointScope::~CheckpointScope() = default;

Tensor checkpoint_sequential(const std::vector<std::function<Tensor(Tensor)>>& functions, size_t segments, Tensor input,
                             const CheckpointOptions& options) {
  BRASA_CHECK(segments > 0, "checkpoint_sequential: expected at least one segment");
  size_t size = std::max<size_t>(functions.size() / segments, 1);
  auto run = [&functions](size_t begin, size_t end) {
    std::vector<std::function<Tensor(Tensor)>> part(functions.data() + begin, functions.data() + end);
    return [part](Tensor x) {
      for (const auto& f : part) x = f(x);
      return x;
    };
  };
  size_t begin = 0;
  for (size_t k = 0; k + 1 < segments && begin + size < functions.size(); ++k, begin += size)
    input = checkpoint(options, run(begin, begin + size), input);
  return run(begin, functions.size())(input);
}

}  // namespace brasa
