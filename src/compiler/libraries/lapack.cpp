#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "compiler/libraries/lapack.h"
#include "compiler/libraries/lapack_functions.h"
#include "compiler/libraries/lapack_matrices.h"
#include "compiler/libraries/rows.h"
#include "compiler/libraries/triangles.h"
#include "runtime/cpu/features.h"
#include "support/error.h"
#include "support/lazy.h"
#include "support/settings.h"
#include "support/shared_library.h"

namespace brasa::compiler {
namespace {

using lapack::by_type, lapack::each, lapack::room_for, lapack::Stack;
using lapack::kComplex, lapack::kLength, lapack::narrow, lapack::Real;

// LAPACK of the system, loaded when it is first needed.
constexpr SharedLibrary kLapack{"liblapack.so.3", "libopenblas0-pthread", "linear algebra"};

// What OpenBLAS reads when it is loaded, unless the user says otherwise. It takes a processor that is younger than itself for the oldest of its
// maker; and matrices are computed side by side by the runtime's threads, beside which its own would only wait for each other.
class ToldOpenBlas {
 public:
  ToldOpenBlas() {
    std::string_view target = runtime::cpu::host_target();
    if (target != "x86-64" && !environment("OPENBLAS_CORETYPE"))
      tell("OPENBLAS_CORETYPE", target.find("avx512") != target.npos ? "SkylakeX" : "Haswell");
    if (!environment("OPENBLAS_NUM_THREADS")) tell("OPENBLAS_NUM_THREADS", "1");
  }
  ~ToldOpenBlas() {
    for (const char* variable : told_) unsetenv(variable);  // the host's own may know better
  }

 private:
  void tell(const char* variable, const char* value) {
    setenv(variable, value, 0);
    told_.push_back(variable);
  }
  std::vector<const char*> told_;
};

int checked(const char* name, int info) {
  BRASA_ASSERT(info >= 0, "LAPACK's ", name, " rejects argument ", -info);
  return info;
}
void check_converged(const char* op, const char* values, int info) {
  BRASA_CHECK(info == 0, op, ": The algorithm failed to converge because the input matrix is ill-conditioned ",
              "or has too many repeated ", values, " (error code: ", info, ").");
}

template <class T>
void check_finite(const char* op, const Scratch<T>& a) {
  bool finite =
      std::all_of(a.begin(), a.end(), [](T x) { return std::isfinite(std::real(x)) && std::isfinite(std::imag(x)); });
  BRASA_CHECK(finite, op, ": The algorithm failed to converge because the input matrix contained non-finite values.");
}

// Runs f(work, &length, &info) twice: LAPACK's convention to ask for the length first.
template <class T, class F>
int with_work(const char* name, F f) {
  T size = 0;
  int ask = -1, info = 0;
  f(&size, &ask, &info);
  int length = std::max(1, static_cast<int>(std::real(size)));
  auto work = room_for<T>(length);
  f(work.data(), &length, &info);
  return checked(name, info);
}

// A factorisation of matrices in place; the last result is the info that `f` gives of matrix b.
template <class T, class F>
void factorise(const LibraryCall& call, F f) {
  Stack in(call.inputs[0], 2), out(call.outputs[0], 2), infos(call.outputs.back(), 0);
  if (in.rows * in.cols == 0) return static_cast<void>(std::fill_n(infos.at<int32_t>(0), infos.count, 0));
  each(in, [&](int64_t b) {
    Scratch<T> a = in.columns<T>(b);
    int m = narrow(in.rows), n = narrow(in.cols);
    *infos.at<int32_t>(b) = f(a.data(), m, n, std::max(1, m), b);
    out.put(b, a.data());
  });
}

// As it lies, a matrix is the transpose for LAPACK: A = L Lᴴ is conj(A) = Uᴴ U there with U = Lᵀ, and the other way round, so nothing is turned.
template <class T>
void cholesky_as_it_lies(const LibraryCall& call, bool upper) {
  Stack in(call.inputs[0], 2), out(call.outputs[0], 2), infos(call.outputs[1], 0);
  if (in.rows == 0) return static_cast<void>(std::fill_n(infos.at<int32_t>(0), infos.count, 0));
  each(in, [&](int64_t b) {
    int n = narrow(in.rows), ld = std::max(1, n), info = 0;
    T *a = out.at<T>(b), *from = in.at<T>(b);
    std::fill_n(a, in.rows * in.rows, T(0));
    for (int64_t i = 0; i < n; ++i) {
      int64_t first = i * n + (upper ? i : 0);
      std::copy_n(from + first, upper ? n - i : i + 1, a + first);
    }
    BRASA_LAPACK(T, potrf)(upper ? "L" : "U", &n, a, &ld, &info, kLength);
    *infos.at<int32_t>(b) = checked("potrf", info);
  });
}

constexpr auto cholesky = []<class T>(std::type_identity<T>, const LibraryCall& call) {
  // OpenBLAS 0.3.21 takes a third longer for small upper triangles than for lower ones.
  constexpr int64_t kSmall = 256;
  if (Stack(call.inputs[0], 2).rows >= kSmall) return cholesky_as_it_lies<T>(call, false);
  factorise<T>(call, [&](T* a, int n, int, int ld, int64_t) {
    int info = 0;
    for (int j = 0; j < n; ++j) std::fill_n(a + static_cast<int64_t>(j) * n, j, T(0));
    BRASA_LAPACK(T, potrf)("L", &n, a, &ld, &info, kLength);
    return checked("potrf", info);
  });
};

constexpr auto upper_cholesky = []<class T>(std::type_identity<T>, const LibraryCall& call) {
  cholesky_as_it_lies<T>(call, true);
};

constexpr auto ldl = []<class T>(std::type_identity<T>, const LibraryCall& call) {
  const auto& sytrf = call.args[1].get<bool>() ? BRASA_LAPACK_NAMED(T, sytrf, hetrf) : BRASA_LAPACK(T, sytrf);
  Stack pivots(call.outputs[1], 1);
  factorise<T>(call, [&](T* a, int n, int, int ld, int64_t b) {
    return with_work<T>("sytrf", [&](T* work, int* length, int* info) {
      sytrf("L", &n, a, &ld, pivots.at<int32_t>(b), work, length, info, kLength);
    });
  });
};

constexpr auto ldl_solve = []<class T>(std::type_identity<T>, const LibraryCall& call) {
  const auto& sytrs = call.args[3].get<bool>() ? BRASA_LAPACK_NAMED(T, sytrs, hetrs) : BRASA_LAPACK(T, sytrs);
  Stack in(call.inputs[0], 2), pivots(call.inputs[1], 1), right(call.inputs[2], 2), out(call.outputs[0], 2);
  each(in, [&](int64_t b) {
    Scratch<T> a = in.columns<T>(b), x = right.columns<T>(b);
    const int32_t* p = pivots.at<int32_t>(b);
    int n = narrow(in.rows), m = narrow(right.cols), ld = std::max(1, n), info = 0;
    // LAPACK would follow other ones out of the matrix.
    for (int k = 0; k < n; ++k) {
      bool pair = p[k] < 0 && k + 1 < n && p[k + 1] == p[k];
      BRASA_CHECK(p[k] != 0 && std::abs(p[k]) <= n && (p[k] > 0 || pair),
                  "linalg.ldl_solve: pivots must be those of ldl_factor, got ", p[k], " for row ", k);
      k += pair;
    }
    sytrs("L", &n, &m, a.data(), &ld, p, x.data(), &ld, &info, kLength);
    checked("sytrs", info);
    out.put(b, x.data());
  });
};

// The permutation of rows that LAPACK's exchanges, which count from 1, come to.
void exchanged(const int32_t* pivots, int64_t count, int64_t* order, int64_t rows) {
  std::iota(order, order + rows, int64_t{0});
  for (int64_t i = 0; i < std::min(count, rows); ++i) {
    int64_t p = pivots[i] - 1;
    BRASA_CHECK(p >= 0 && p < rows, "pivots passed to lu_unpack must be between 1 and ", rows, ", got ", p + 1);
    std::swap(order[i], order[p]);
  }
}

// Columns beyond a square decide no exchange: they are L⁻¹ times the exchanged ones, which needs no turned memory.
constexpr auto lu = []<class T>(std::type_identity<T>, const LibraryCall& call) {
  Stack in(call.inputs[0], 2), out(call.outputs[0], 2), pivots(call.outputs[1], 1), infos(call.outputs[2], 0);
  if (in.rows * in.cols == 0) return static_cast<void>(std::fill_n(infos.at<int32_t>(0), infos.count, 0));
  int m = narrow(in.rows), n = narrow(std::min(in.rows, in.cols)), all = narrow(in.cols), others = all - n;
  each(in, [&](int64_t b) {
    Scratch<T> square = in.columns<T>(b, n);
    int info = 0;
    BRASA_LAPACK(T, getrf)(&m, &n, square.data(), &m, pivots.at<int32_t>(b), &info);
    infos.at<int32_t>(b)[0] = checked("getrf", info);
    out.put(b, square.data(), n);
    if (others == 0) return;
    std::vector<int64_t> order(in.rows);
    exchanged(pivots.at<int32_t>(b), n, order.data(), m);
    T* to = out.at<T>(b);
    for (int64_t i = 0; i < m; ++i) std::copy_n(in.at<T>(b) + order[i] * all + n, others, to + i * all + n);
    lapack::solve_from_right({true, false, true}, others, m, to, all, to + n, all);
  });
};

// Row-major memory read as column-major is the transpose.
constexpr auto lu_of_transpose = []<class T>(std::type_identity<T>, const LibraryCall& call) {
  Stack in(call.inputs[0], 2), out(call.outputs[0], 2), pivots(call.outputs[1], 1), infos(call.outputs[2], 0);
  if (in.rows == 0) return static_cast<void>(std::fill_n(infos.at<int32_t>(0), infos.count, 0));
  int n = narrow(in.rows);
  each(in, [&](int64_t b) {
    std::copy_n(in.at<T>(b), in.rows * in.cols, out.at<T>(b));
    int info = 0;
    BRASA_LAPACK(T, getrf)(&n, &n, out.at<T>(b), &n, pivots.at<int32_t>(b), &info);
    *infos.at<int32_t>(b) = checked("getrf", info);
  });
};

// Memory of L is Lᵀ for LAPACK, and of A⁻¹ is its conjugate. It inverts no factor with a zero on its diagonal.
constexpr auto cholesky_inverse = []<class T>(std::type_identity<T>, const LibraryCall& call) {
  bool upper = !call.args[1].get<bool>();  // LAPACK's
  Stack in(call.inputs[0], 2), out(call.outputs[0], 2);
  int n = narrow(in.rows);
  each(in, [&](int64_t b) {
    const T* l = in.at<T>(b);
    T* x = out.at<T>(b);
    int info = 0;
    std::copy_n(l, in.rows * in.cols, x);
    BRASA_LAPACK(T, potri)(upper ? "U" : "L", &n, x, &n, &info, kLength);
    if (checked("potri", info) > 0)
      return static_cast<void>(std::fill_n(x, in.rows * in.cols, std::numeric_limits<Real<T>>::quiet_NaN()));
    lapack::mirror(upper, n, x);
  });
};

void lu_permutation(const LibraryCall& call) {
  Stack in(call.inputs[0], 1), out(call.outputs[0], 1);
  for (int64_t b = 0; b < in.count; ++b) exchanged(in.at<int32_t>(b), in.rows, out.at<int64_t>(b), out.rows);
}

// X = T⁻¹ B is Xᵀ = Bᵀ T⁻ᵀ in place, without a copy.
constexpr auto triangular_solve = []<class T>(std::type_identity<T>, const LibraryCall& call) {
  bool upper = call.args[2].get<bool>(), transposed = call.args[3].get<bool>(), unit = call.args[4].get<bool>();
  Stack a(call.inputs[0], 2), in(call.inputs[1], 2), out(call.outputs[0], 2);
  each(a, [&](int64_t b) {
    if (in.rows * in.cols == 0) return;
    std::memcpy(out.at<T>(b), in.at<T>(b), sizeof(T) * in.rows * in.cols);
    int n = narrow(in.rows), k = narrow(in.cols);
    const lapack::Triangle how{!upper, transposed, unit};
    const T* t = a.at<T>(b);
    T* x = out.at<T>(b);
    if (n == k && lapack::keeps_zeros(how, n, t, n, x, n)) return lapack::solve_with_zeros(how, n, t, n, x, n);
    lapack::solve_from_right(how, k, n, t, n, x, k);
  });
};

template <class T>
int factor_qr(T* a, int m, int n, int ld, T* tau) {
  return with_work<T>("geqrf", [&](T* work, int* length, int* info) {
    BRASA_LAPACK(T, geqrf)(&m, &n, a, &ld, tau, work, length, info);
  });
}

// The first columns of the product of `reflectors` ones, which are in the first columns of `a`.
template <class T>
void multiply_reflectors(T* a, int m, int columns, int reflectors, const T* tau) {
  int ld = std::max(1, m);
  with_work<T>("orgqr", [&](T* work, int* length, int* info) {
    const auto& orgqr = BRASA_LAPACK_NAMED(T, orgqr, ungqr);
    orgqr(&m, &columns, &reflectors, a, &ld, tau, work, length, info);
  });
}

constexpr auto householder_product = []<class T>(std::type_identity<T>, const LibraryCall& call) {
  Stack in(call.inputs[0], 2), taus(call.inputs[1], 1), out(call.outputs[0], 2);
  each(in, [&](int64_t b) {
    Scratch<T> a = in.columns<T>(b);
    multiply_reflectors(a.data(), narrow(in.rows), narrow(in.cols), narrow(taus.rows), taus.at<T>(b));
    out.put(b, a.data());
  });
};

constexpr auto geqrf = []<class T>(std::type_identity<T>, const LibraryCall& call) {
  Stack in(call.inputs[0], 2), out(call.outputs[0], 2), taus(call.outputs[1], 1);
  each(in, [&](int64_t b) {
    Scratch<T> a = in.columns<T>(b);
    int m = narrow(in.rows);
    factor_qr(a.data(), m, narrow(in.cols), std::max(1, m), taus.at<T>(b));
    out.put(b, a.data());
  });
};

constexpr auto qr = []<class T>(std::type_identity<T>, const LibraryCall& call) {
  Stack in(call.inputs[0], 2), qs(call.outputs[0], 2), rs(call.outputs[1], 2);
  // A matrix without columns still has a complete Q, and LAPACK's orgqr makes it.
  each(qs, [&](int64_t b) {
    int m = narrow(in.rows), n = narrow(in.cols), columns = narrow(qs.cols), reflectors = std::min(m, n);
    int ld = std::max(1, m);
    Scratch<T> a = in.columns<T>(b, n, int64_t{m} * std::max(n, columns)), tau = room_for<T>(reflectors);
    factor_qr(a.data(), m, n, ld, tau.data());
    T* r = rs.at<T>(b);
    for (int64_t i = 0; i < rs.rows; ++i)
      for (int64_t j = 0; j < n; ++j) r[i * n + j] = i <= j ? a[j * m + i] : T(0);
    multiply_reflectors(a.data(), m, columns, reflectors, tau.data());
    qs.put(b, a.data());
  });
};

constexpr auto eigh = []<class T>(std::type_identity<T>, const LibraryCall& call) {
  bool with_vectors = call.args[1].get<bool>();
  Stack in(call.inputs[0], 2), values(call.outputs[0], 1), vectors(call.outputs[1], 2);
  if (in.rows == 0) return;
  each(in, [&](int64_t b) {
    Scratch<T> a = in.columns<T>(b);
    int n = narrow(in.rows), ld = std::max(1, n), int_length = 3 + 5 * n;
    std::vector<int> ints(int_length);
    std::vector<Real<T>> reals(kComplex<T> ? 1 + 5 * in.rows + 2 * in.rows * in.rows : 0);
    int real_length = narrow(static_cast<int64_t>(reals.size()));
    int info = with_work<T>("syevd", [&](T* work, int* length, int* info) {
      const auto& syevd = BRASA_LAPACK_NAMED(T, syevd, heevd);
      Real<T>* w = values.at<Real<T>>(b);
      const char* which = with_vectors ? "V" : "N";
      if constexpr (kComplex<T>)
        syevd(which, "L", &n, a.data(), &ld, w, work, length, reals.data(), &real_length, ints.data(), &int_length,
              info, kLength, kLength);
      else
        syevd(which, "L", &n, a.data(), &ld, w, work, length, ints.data(), &int_length, info, kLength, kLength);
    });
    check_converged("linalg.eigh", "eigenvalues", info);
    if (with_vectors) vectors.put(b, a.data());
  });
};

// A wide matrix as its transpose, conj(V) S Uᵀ, which memory holds column by column: LAPACK factors columns sooner than rows, and its results are
// V's adjoint and U where they are wanted.
constexpr auto svd = []<class T>(std::type_identity<T>, const LibraryCall& call) {
  bool full = call.args[1].get<bool>(), with_vectors = call.args[2].get<bool>();
  Stack in(call.inputs[0], 2), us(call.outputs[0], 2), values(call.outputs[1], 1), vs(call.outputs[2], 2);
  bool turned = in.rows <= in.cols;
  each(in, [&](int64_t b) {
    int m = narrow(turned ? in.cols : in.rows), n = narrow(turned ? in.rows : in.cols);
    if (n == 0) {
      for (const Stack* s : {&us, &vs}) {
        std::fill_n(s->at<T>(b), s->rows * s->cols, T(0));
        for (int64_t i = 0; i < std::min(s->rows, s->cols); ++i) s->at<T>(b)[i * (s->cols + 1)] = T(1);
      }
      return;
    }
    Scratch<T> a = turned ? in.copy<T>(b) : in.columns<T>(b);
    auto u = room_for<T>(turned ? 0 : us.rows * us.cols), v = room_for<T>(turned ? 0 : vs.rows * vs.cols);
    T *left = turned ? vs.at<T>(b) : u.data(), *right = turned ? us.at<T>(b) : v.data();
    int right_ld = std::max(1, narrow(turned ? us.cols : vs.rows));
    std::vector<int> ints(8 * n);
    int64_t least = n, most = m;
    std::vector<Real<T>> reals(kComplex<T> ? least * std::max(5 * least + 7, 2 * most + 2 * least + 1) : 0);
    check_finite("linalg.svd", a);
    int info = with_work<T>("gesdd", [&](T* work, int* length, int* info) {
      const auto& gesdd = BRASA_LAPACK(T, gesdd);
      const char* which = !with_vectors ? "N" : full ? "A" : "S";
      Real<T>* s = values.at<Real<T>>(b);
      if constexpr (kComplex<T>)
        gesdd(which, &m, &n, a.data(), &m, s, left, &m, right, &right_ld, work, length, reals.data(), ints.data(), info,
              kLength);
      else
        gesdd(which, &m, &n, a.data(), &m, s, left, &m, right, &right_ld, work, length, ints.data(), info, kLength);
    });
    check_converged("linalg.svd", "singular values", info);
    if (!with_vectors || turned) return;
    us.put(b, u.data());
    vs.put(b, v.data());
  });
};

template <class T>
void split_parts(const Scratch<T>& v, int64_t n, Real<T>* vr, Real<T>* vi) {
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = 0; i < n; ++i) {
      vr[i * n + j] = v[j * n + i].real();
      vi[i * n + j] = v[j * n + i].imag();
    }
}
// A pair of conjugate values has the real and the imaginary part of its first vector in two columns.
template <class T>
void split_pairs(const T* im, const Scratch<T>& v, int64_t n, T* vr, T* vi) {
  for (int64_t j = 0; j < n; ++j) {
    bool pair = im[j] != 0;
    for (int64_t i = 0; i < n; ++i) {
      T x = v[j * n + i], y = pair ? v[(j + 1) * n + i] : T(0);
      vr[i * n + j] = x;
      vi[i * n + j] = y;
      if (pair) {
        vr[i * n + j + 1] = x;
        vi[i * n + j + 1] = -y;
      }
    }
    if (pair) ++j;
  }
}

constexpr auto eig = []<class T>(std::type_identity<T>, const LibraryCall& call) {
  bool with_vectors = call.args[1].get<bool>();
  Stack in(call.inputs[0], 2), re(call.outputs[0], 1), im(call.outputs[1], 1), vre(call.outputs[2], 2),
      vim(call.outputs[3], 2);
  if (in.rows == 0) return;
  each(in, [&](int64_t b) {
    Scratch<T> a = in.columns<T>(b), v = room_for<T>(in.rows * in.rows);
    int n = narrow(in.rows), ld = std::max(1, n), one = 1;
    T none = 0;
    std::vector<T> values(kComplex<T> ? n : 0);
    std::vector<Real<T>> reals(kComplex<T> ? 2 * std::max(1, n) : 0);
    int info = with_work<T>("geev", [&](T* work, int* length, int* info) {
      const auto& geev = BRASA_LAPACK(T, geev);
      const char* which = with_vectors ? "V" : "N";
      if constexpr (kComplex<T>)
        geev("N", which, &n, a.data(), &ld, values.data(), &none, &one, v.data(), &ld, work, length, reals.data(), info,
             kLength, kLength);
      else
        geev("N", which, &n, a.data(), &ld, re.at<T>(b), im.at<T>(b), &none, &one, v.data(), &ld, work, length, info,
             kLength, kLength);
    });
    check_converged("linalg.eig", "eigenvalues", info);
    if constexpr (kComplex<T>)
      for (int j = 0; j < n; ++j) {
        re.at<Real<T>>(b)[j] = values[j].real();
        im.at<Real<T>>(b)[j] = values[j].imag();
      }
    if (!with_vectors) return;
    if constexpr (kComplex<T>)
      split_parts(v, n, vre.at<Real<T>>(b), vim.at<Real<T>>(b));
    else
      split_pairs(im.at<T>(b), v, n, vre.at<T>(b), vim.at<T>(b));
  });
};

constexpr Implementation row(std::string_view name, std::string_view primitive, void (*run)(const LibraryCall&)) {
  return {.library = "lapack", .name = name, .primitive = primitive, .run = run};
}

}  // namespace

void* lapack_symbol(const char* name) {
  static constinit Lazy<void*> first([] {
    ToldOpenBlas told;
    return kLapack.symbol("ilaver_");
  });
  return *first ? kLapack.symbol(name) : nullptr;
}

ForkSafe<std::mutex>* lapack_turns() {
  static constinit Lazy<ForkSafe<std::mutex>*> turns([]() -> ForkSafe<std::mutex>* {
    static ForkSafe<std::mutex> one_call;
    void* parallel = lapack_symbol("ilaver_") ? kLapack.find("openblas_get_parallel") : nullptr;
    return parallel && reinterpret_cast<int (*)()>(parallel)() == 0 ? &one_call : nullptr;
  });
  return *turns;
}

LapackFacts facts_of_lapack() {
  LapackFacts facts;
  void* version = nullptr;
  try {
    version = lapack_symbol("ilaver_");
  } catch (const Error& e) {
    facts.why_not = e.what();
    return facts;
  }
  int major = 0, minor = 0, patch = 0;
  reinterpret_cast<void (*)(int*, int*, int*)>(version)(&major, &minor, &patch);
  facts.version = str("interface ", major, '.', minor, '.', patch);
  Dl_info info{};
  if (lapack_turns()) facts.version += ", one call at a time (the package libopenblas0-pthread takes several)";
  if (dladdr(version, &info) != 0 && info.dli_fname) facts.path = info.dli_fname;
  return facts;
}

const Implementation kCholesky = row("lapack potrf", "prim::cholesky", by_type<cholesky>);
const Implementation kUpperCholesky = row("lapack potrf in place", "prim::upper_cholesky", by_type<upper_cholesky>);
const Implementation kLdl = row("lapack sytrf", "prim::ldl", by_type<ldl>);
const Implementation kLdlSolve = row("lapack sytrs", "prim::ldl_solve", by_type<ldl_solve>);
const Implementation kLu = row("lapack getrf", "prim::lu", by_type<lu>);
const Implementation kLuPermutation = row("permutation", "prim::lu_permutation", lu_permutation);
const Implementation kTriangularSolve = row("blas trsm", "prim::triangular_solve", by_type<triangular_solve>);
const Implementation kQr = row("lapack geqrf orgqr", "prim::qr", by_type<qr>);
const Implementation kGeqrf = row("lapack geqrf", "prim::geqrf", by_type<geqrf>);
const Implementation kLuOfTranspose = row("lapack getrf in place", "prim::lu_of_transpose", by_type<lu_of_transpose>);
const Implementation kCholeskyInverse = row("lapack potri", "prim::cholesky_inverse", by_type<cholesky_inverse>);
const Implementation kHouseholderProduct =
    row("lapack orgqr", "prim::householder_product", by_type<householder_product>);
const Implementation kEigh = row("lapack syevd", "prim::eigh", by_type<eigh>);
const Implementation kSvd = row("lapack gesdd", "prim::svd", by_type<svd>);
const Implementation kEig = row("lapack geev", "prim::eig", by_type<eig>);

}  // namespace brasa::compiler
