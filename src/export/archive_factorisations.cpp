#include <map>

#include "export/archive_primitives.h"
#include "export/node_writer.h"
#include "import/types.h"
#include "support/lazy.h"

// What a library computes: PyTorch has the same factorisations, with other triangles, permutations as matrices, and complex numbers whole.
namespace brasa::exporting {
namespace {

using ir::Expr;
using ir::Shape;
using ir::Type;
using ir::Value;

class Writer : NodeWriter {
 public:
  using NodeWriter::NodeWriter;

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
    static constinit Lazy<std::map<std::string_view, Write>> kOthers([] {
      return std::map<std::string_view, Write>{
          {"lu_permutation", &Writer::lu_permutation},
          {"triangular_solve", &Writer::triangular_solve},
          {"eig", &Writer::eig},
          {"fft", &Writer::fft},
          {"join_parts", &Writer::join_parts},
          {"split_parts", &Writer::split_parts},
      };
    });
    auto at = kOthers->find(kind);
    return at == kOthers->end() ? Names() : (this->*at->second)();
  }

 private:
  Json flag(size_t i) const { return a_bool(n_.arg<bool>(i)); }
  // The parts of complex numbers, of types part and part + 1 among the results.
  Names parts(const std::string& name, size_t part) {
    Json z = of(name);
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
        to_.add("lu_unpack.default", {{"LU_data", of(any)}, {"LU_pivots", of(0)}, {"unpack_data", a_bool(false)}},
                {square, matrix, upper});
    return {aten("argmax.default", {{"self", of(unpacked[0])}, {"dim", an_int(-2)}}, n_.types[0])};
  }
  Names triangular_solve() {
    bool upper = n_.arg<bool>(2), transposed = n_.arg<bool>(3);
    Json a = of(0);
    if (transposed) a = of(aten("transpose.int", {{"self", a}, {"dim0", an_int(-2)}, {"dim1", an_int(-1)}}, type(0)));
    return to_.add(
        "linalg_solve_triangular.default",
        {{"self", a}, {"B", of(1)}, {"upper", a_bool(upper != transposed), true}, {"unitriangular", flag(4), true}},
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
    Json whole = of(aten("complex.default", {{"real", of(0)}, {"imag", of(1)}}, z));
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
};

}  // namespace

Names write_factorisation(ArchiveNodes& to, const ir::Node& node, const std::function<std::string(Value)>& name_of) {
  std::string_view name = node.op->schema.name;
  return Writer(to, node, name_of).write(name.substr(name.find("::") + 2));
}

}  // namespace brasa::exporting
