#include "tensor/recorder.h"

#include <brasa/tensor.h>

#include "support/error.h"
#include "support/lazy.h"

namespace brasa {

namespace {

class Lost final : public Recorder {
 public:
  void call(const ops::Row&, std::span<const CallArg>, eager::Results&) override { materialise("an operator"); }
  void lay_out(const Tensor&, const Sizes&) override {}
  void moves(const Tensor&) override {}
  void write(const Tensor&, const Tensor&) override { materialise("a write"); }
  Tensor snapshot(const Tensor&) override {
    materialise("backward");
    return {};
  }
  uint32_t last_call() const override { return 0; }
  void made(const std::shared_ptr<autograd::Node>&, uint32_t, std::span<const Tensor>) override {}
  void materialise(const char* reason) override {
    fail(str(reason,
             " needs the value of a tensor that was never computed: the compiled function that recorded it ended with "
             "an error, or it left a function under vmap, jvp or vjp other than as its result"));
  }
};

}  // namespace

Recorder* Recorder::lost() {
  static constinit Lazy<Lost> lost;
  return &*lost;
}

Recorder::~Recorder() = default;

std::optional<std::vector<Recorder::Integer>> Recorder::integers(const Tensor&, const std::string&) {
  return std::nullopt;
}
std::optional<int64_t> Recorder::item(const Tensor&) { return std::nullopt; }
Tensor Recorder::known(const Tensor&) { return {}; }
Tensor Recorder::result_of(const autograd::Node&, uint32_t) { return {}; }

}  // namespace brasa
