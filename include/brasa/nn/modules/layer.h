#pragma once

#include <concepts>

#include <brasa/nn/cloneable.h>
#include <brasa/nn/options.h>
#include <brasa/nn/pimpl.h>

namespace brasa::nn::detail {

/// A module whose only state are its options.
template <class Derived, class Options>
class Layer : public Cloneable<Derived> {
 public:
  Layer()
    requires(std::default_initializable<Options>)
  {}
  explicit Layer(Options o) : options(std::move(o)) {}
  /// From what the options are made of.
  template <class... A>
    requires(sizeof...(A) > 0 && std::constructible_from<Options, A...>)
  explicit Layer(A&&... arguments) : options(std::forward<A>(arguments)...) {}
  void reset() override {}
  Options options;
};

}  // namespace brasa::nn::detail

/// Declares NameImpl, a layer with NameOptions and forward(…), and Name, its holder.
#define BRASA_LAYER(Name, ...)                                                   \
  class BRASA_API Name##Impl : public detail::Layer<Name##Impl, Name##Options> { \
   public:                                                                       \
    using detail::Layer<Name##Impl, Name##Options>::Layer;                       \
    void pretty_print(std::ostream& stream) const override;                      \
    Tensor forward(__VA_ARGS__);                                                 \
  };                                                                             \
  BRASA_MODULE(Name)
