#pragma once

#include <optional>
#include <string>
#include <tuple>

#include "optim/numbers.h"
#include "support/error.h"

// Options and states in an archive, and what most optimizers want of their options and do with them.
namespace brasa::optim {

// One list of fields serves to write and to read.
struct FieldWriter {
  serialize::OutputArchive& archive;
  void operator()(const char* key, const Tensor& t) { archive.write(key, t); }
  template <class... T>
  void operator()(const char* key, const std::tuple<T...>& items) {
    int i = 0;
    std::apply([&](const T&... item) { ((*this)((key + std::to_string(i++)).c_str(), item), ...); }, items);
  }
  void operator()(const char* key, const std::optional<double>& number) {
    if (number) write_number(archive, key, *number);
  }
  template <class T>
  void operator()(const char* key, const T& number) {
    write_number(archive, key, static_cast<double>(number));
  }
};
struct FieldReader {
  serialize::InputArchive& archive;
  void operator()(const char* key, Tensor& t) { archive.try_read(key, t); }
  template <class... T>
  void operator()(const char* key, std::tuple<T...>& items) {
    int i = 0;
    std::apply([&](T&... item) { ((*this)((key + std::to_string(i++)).c_str(), item), ...); }, items);
  }
  void operator()(const char* key, std::optional<double>& number) {
    Tensor t;
    number = archive.try_read(key, t) ? std::optional<double>(t.item<double>()) : std::nullopt;
  }
  template <class T>
  void operator()(const char* key, T& number) {
    number = static_cast<T>(read_number(archive, key));
  }
};

template <class Options>
void check_common(const Options& o) {
  BRASA_CHECK(o.lr() >= 0, "Invalid learning rate: ", o.lr());
  if constexpr (requires { o.eps(); }) BRASA_CHECK(o.eps() >= 0, "Invalid epsilon value: ", o.eps());
  if constexpr (requires { o.weight_decay(); })
    BRASA_CHECK(o.weight_decay() >= 0, "Invalid weight_decay value: ", o.weight_decay());
  if constexpr (requires { o.betas(); }) {
    auto [beta1, beta2] = o.betas();
    BRASA_CHECK(0 <= beta1 && beta1 < 1, "Invalid beta parameter at index 0: ", beta1);
    BRASA_CHECK(0 <= beta2 && beta2 < 1, "Invalid beta parameter at index 1: ", beta2);
  }
}

/// The gradient with weight decay; where that is decoupled, the parameter shrinks instead.
template <class Options>
Tensor decayed(Tensor& p, const Tensor& g, const Options& o, bool decoupled = false) {
  if (o.weight_decay() == 0) return g;
  if (!decoupled) return g.add(p, o.weight_decay());
  p.mul_(1 - o.lr() * o.weight_decay());
  return g;
}

#define BRASA_F(field) f(#field, o.field());
#define BRASA_FIELDS(Type, fields)                                \
  void Type::serialize(serialize::OutputArchive& archive) const { \
    FieldWriter f{archive};                                       \
    const Type& o = *this;                                        \
    fields                                                        \
  }                                                               \
  void Type::serialize(serialize::InputArchive& archive) {        \
    FieldReader f{archive};                                       \
    Type& o = *this;                                              \
    fields                                                        \
  }

}  // namespace brasa::optim
