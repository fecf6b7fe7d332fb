#include <map>

#include "export/archive_primitives.h"
#include "import/types.h"

// What a library computes: PyTorch has the same factorisations, with other triangles, permutations as matrices, and complex numbers whole.
namespace brasa::exporting {
namespace {

using ir::Expr;
using ir::Shape;
using ir::Type;
using ir::Value;
using Names = std::vector<std::string>;
using Arguments = std::vector<ArchiveNodes::Argument>;

class Writer {
 public:
  Writer(ArchiveNodes& to, const ir::Node& node, const std::function<std::string(Value)>& name_of)
      : to_(to), n_(node), name_of_(name_of) {}

  Names write(std::string_view kind) {
    // Those that have the same operands and results there.
    if (kind == "cholesky") return to_.add("linalg_cholesky_ex.default", {{"self", of(0)}}, n_.types);
    if (kind == "lu") return to_.add("linalg_lu_factor_ex.default", {{"A", of(0)}}, n_.types);
    if (kind == "ldl")
      return to_.add("linalg_ldl_factor_ex.default", {{"self", of(0)}, {"hermitian", flag(1), true}}, n_.types);
    if (kind == "ldl_solve")
      return to_.add("linalg_ldl_solve.default",
                     {{"LD", of(0)}, {"pivots", of(1)}, {"B", of(2)}, {"hermitian", flag(3), true}}, n_.types);
    if (kind == "geqrf") return to_.add("geqrf.default", {{"self", of(0)}}, n_.types);
    if (kind == "eigh") return to_.add("linalg_eigh.default", {{"self", of(0)}}, n_.types);
    if (kind == "svd") return to_.add("linalg_svd.default", {{"A", of(0)}, {"full_matrices", flag(1)}}, n_.types);
    if (kind == "qr")
      return to_.add("linalg_qr.default",
                     {{"A", of(0)}, {"mode", {{"as_string", n_.arg<bool>(1) ? "complete" : "reduced"}}}}, n_.types);

    using Write = Names (Writer::*)();
    static const std::map<std::string_view, Write> kOthers{
        {"lu_permutation", &Writer::lu_permutation},
        {"triangular_solve", &Writer::triangular_solve},
        {"eig", &Writer::eig},
        {"fft", &Writer::fft},
        {"join_parts", &Writer::join_parts},
        {"split_parts", &Writer::split_parts},
    };
    auto at = kOthers.find(kind);
    return at == kOthers.end() ? Names() : (this->*at->second)();
  }

 private:
  const Type& type(size_t i) const { return ir::type_of(n_.arg<Value>(i)); }
  Json of(size_t i) const { return ArchiveNodes::tensor(name_of_(n_.arg<Value>(i))); }
  Json flag(size_t i) const { return flag_of(n_.arg<bool>(i)); }
  static Json flag_of(bool b) { return {{"as_bool", b}}; }
  static Json an_int(int64_t n) { return {{"as_int", n}}; }
  std::string aten(const std::string& target, const Arguments& arguments, const Type& type) {
    return to_.add(target, arguments, {type}).front();
  }
  // The parts of complex numbers, of types part and part + 1 among the results.
  Names parts(const std::string& name, size_t part) {
    Json z = ArchiveNodes::tensor(name);
    std::string re = aten("real.default", {{"self", z}}, n_.types[part]),
                im = aten("imag.default", {{"self", z}}, n_.types[part + 1]);
    return {re, im};
  }
  static Type complex_like(const Type& t) { return {complex_of(t.dtype), t.shape, false}; }

  // PyTorch has the permutation as a matrix, with ones at [order[i], i].
  Names lu_permutation() {
    const Type& pivots = type(0);
    Type matrix{DType::Float32, n_.types[0].shape, false}, square = matrix, upper = matrix;
    matrix.shape.push_back(pivots.shape.back());
    square.shape.push_back(square.shape.back());
    upper.shape.back() = pivots.shape.back();
    upper.shape.push_back(pivots.shape.back());
    std::string any =
        aten("full.default", {{"size", to_.integers(matrix.shape)}, {"fill_value", {{"as_float", 0.0}}}}, matrix);
    Names unpacked =
        to_.add("lu_unpack.default",
                {{"LU_data", ArchiveNodes::tensor(any)}, {"LU_pivots", of(0)}, {"unpack_data", flag_of(false)}},
                {square, matrix, upper});
    return {aten("argmax.default", {{"self", ArchiveNodes::tensor(unpacked[0])}, {"dim", an_int(-2)}}, n_.types[0])};
  }
  Names triangular_solve() {
    bool upper = n_.arg<bool>(2), transposed = n_.arg<bool>(3);
    Json a = of(0);
    if (transposed)
      a = ArchiveNodes::tensor(
          aten("transpose.int", {{"self", a}, {"dim0", an_int(-2)}, {"dim1", an_int(-1)}}, type(0)));
    return to_.add(
        "linalg_solve_triangular.default",
        {{"self", a}, {"B", of(1)}, {"upper", flag_of(upper != transposed), true}, {"unitriangular", flag(4), true}},
        n_.types);
  }
  Names eig() {
    Names both =
              to_.add("linalg_eig.default", {{"self", of(0)}}, {complex_like(n_.types[0]), complex_like(n_.types[2])}),
          out = parts(both[0], 0), vectors = parts(both[1], 2);
    out.insert(out.end(), vectors.begin(), vectors.end());
    return out;
  }
  Names fft() {
    Type z = complex_like(type(0));
    Json whole = ArchiveNodes::tensor(aten("complex.default", {{"real", of(0)}, {"imag", of(1)}}, z));
    return parts(aten("_fft_c2c.default",
                      {{"self", whole},
                       {"dim", {{"as_ints", {n_.arg<Expr>(2).constant()}}}},
                       {"normalization", an_int(0)},
                       {"forward", flag(3)}},
                      z),
                 0);
  }
  Names join_parts() { return to_.add("complex.default", {{"real", of(0)}, {"imag", of(1)}}, n_.types); }
  Names split_parts() { return parts(name_of_(n_.arg<Value>(0)), 0); }

  ArchiveNodes& to_;
  const ir::Node& n_;
  const std::function<std::string(Value)>& name_of_;
};

}  // namespace

Names write_factorisation(ArchiveNodes& to, const ir::Node& node, const std::function<std::string(Value)>& name_of) {
  std::string_view name = node.op->schema.name;
  return Writer(to, node, name_of).write(name.substr(name.find("::") + 2));
}

}  // namespace brasa::exporting
