#pragma once

#include <functional>

#include <brasa/nn/cloneable.h>
#include <brasa/nn/pimpl.h>

namespace brasa::nn {

/// A function as a module, its further arguments bound: `Functional(relu)`, `Functional(elu, 1, 0, 1)`.
class BRASA_API FunctionalImpl : public Cloneable<FunctionalImpl> {
 public:
  using Function = std::function<Tensor(Tensor)>;

  explicit FunctionalImpl(Function function);
  template <class F, class... A>
    requires(sizeof...(A) > 0)
  explicit FunctionalImpl(F function, A&&... arguments)
      : FunctionalImpl(Function(std::bind(function, std::placeholders::_1, std::forward<A>(arguments)...))) {}

  void reset() override {}
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(Tensor input);
  Tensor operator()(Tensor input) { return forward(std::move(input)); }
  bool is_serializable() const override { return false; }

 private:
  Function function_;
};
BRASA_MODULE(Functional);

}  // namespace brasa::nn
