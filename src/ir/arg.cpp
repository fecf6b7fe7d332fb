#include "ir/arg.h"

#include "ir/text.h"
#include "support/error.h"
#include "support/hash.h"

namespace brasa::ir {
namespace {

struct HashOf {
  uint64_t operator()(None) const { return 1; }
  uint64_t operator()(Value v) const { return mix(reinterpret_cast<uint64_t>(v.node), v.index); }
  uint64_t operator()(Expr e) const { return e->hash; }
  uint64_t operator()(double d) const {
    uint64_t bits;
    std::memcpy(&bits, &d, sizeof bits);
    return mix(7, bits);
  }
  uint64_t operator()(bool b) const { return b ? 11 : 13; }
  uint64_t operator()(const std::complex<double>& c) const { return mix((*this)(c.real()), (*this)(c.imag())); }
  uint64_t operator()(const std::string& s) const { return hash_bytes(s); }
  uint64_t operator()(const Body& b) const { return hash_bytes(b.text()); }
  uint64_t operator()(DType t) const { return mix(17, static_cast<uint64_t>(t)); }
  template <class T>
  uint64_t operator()(const std::vector<T>& items) const {
    uint64_t h = 19 + items.size();
    for (const auto& item : items) h = mix(h, (*this)(static_cast<const T&>(item)));
    return h;
  }
};

bool same(double a, double b) { return std::memcmp(&a, &b, sizeof a) == 0; }

}  // namespace

Body::Body(std::shared_ptr<const Graph> graph) {
  std::string text = print(*graph);
  printed_ = std::make_shared<Printed>(Printed{std::move(graph), std::move(text)});
}

uint64_t Arg::hash() const { return mix(v_.index(), std::visit(HashOf{}, v_)); }

bool operator==(const Arg& a, const Arg& b) {
  if (a.v_.index() != b.v_.index()) return false;
  // Numbers compare by their bits: a NaN equals itself, and 0.0 differs from -0.0.
  if (auto* x = a.get_if<double>()) return same(*x, b.get<double>());
  if (auto* x = a.get_if<std::vector<double>>()) {
    const auto& y = b.get<std::vector<double>>();
    if (x->size() != y.size()) return false;
    for (size_t i = 0; i < y.size(); ++i)
      if (!same((*x)[i], y[i])) return false;
    return true;
  }
  if (auto* x = a.get_if<std::complex<double>>()) {
    auto y = b.get<std::complex<double>>();
    return same(x->real(), y.real()) && same(x->imag(), y.imag());
  }
  return a.v_ == b.v_;
}

void Arg::wrong_kind() const {
  fail_internal(str("an argument holds kind ", v_.index(), " of the variant where another was expected"));
}

}  // namespace brasa::ir
