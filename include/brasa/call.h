#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <brasa/tensor.h>

// Operators by name, for bindings and tools. `brasa::call("aten::gelu", {x})`.
namespace brasa {

/// One argument of an operator: what it is and where it lies. Points to the caller's objects and owns nothing.
struct CallArg {
  enum class Kind : uint8_t {
    None,
    Tensor,
    Tensors,
    OptionalTensors,
    Scalar,
    Scalars,
    Int,
    Ints,
    Double,
    Doubles,
    Bool,
    Bools,
    String,
    DType,
    Layout,
    Device,
    MemoryFormat,
    Generator,
  };
  Kind kind : 7 = Kind::None;
  /// An integer that a recording knows as more than its value: the size is its name there, and behind a list's items lie their names, 0 for none.
  bool named : 1 = false;
  uint32_t size = 0;  // of lists and strings
  union {
    const Tensor* tensor;  // also lists
    const std::optional<Tensor>* optional_tensor;
    const Scalar* scalar;
    const int64_t* ints;
    const double* doubles;
    const bool* bools;
    const char* chars;
    const Generator* generator;
    int64_t integer;
    double real;
  };

  CallArg() : integer(0) {}
  CallArg(std::nullopt_t) : CallArg() {}                                                                   // NOLINT
  CallArg(const Tensor& t) : kind(t.defined() ? Kind::Tensor : Kind::None), tensor(&t) {}                  // NOLINT
  CallArg(TensorList t) : kind(Kind::Tensors), size(static_cast<uint32_t>(t.size())), tensor(t.data()) {}  // NOLINT
  CallArg(const std::vector<Tensor>& t) : CallArg(TensorList(t)) {}                                        // NOLINT
  CallArg(ArrayRef<std::optional<Tensor>> t)                                                               // NOLINT
      : kind(Kind::OptionalTensors), size(static_cast<uint32_t>(t.size())), optional_tensor(t.data()) {}
  CallArg(const Scalar& s) : kind(Kind::Scalar), scalar(&s) {}  // NOLINT
  CallArg(ArrayRef<Scalar> s)
      : kind(Kind::Scalars), size(static_cast<uint32_t>(s.size())), scalar(s.data()) {}                // NOLINT
  CallArg(int64_t v) : kind(Kind::Int), integer(v) {}                                                  // NOLINT
  CallArg(int v) : kind(Kind::Int), integer(v) {}                                                      // NOLINT
  CallArg(double v) : kind(Kind::Double), real(v) {}                                                   // NOLINT
  CallArg(bool v) : kind(Kind::Bool), integer(v) {}                                                    // NOLINT
  CallArg(IntArrayRef v) : kind(Kind::Ints), size(static_cast<uint32_t>(v.size())), ints(v.data()) {}  // NOLINT
  CallArg(const std::vector<int64_t>& v) : CallArg(IntArrayRef(v)) {}                                  // NOLINT
  CallArg(ArrayRef<double> v)
      : kind(Kind::Doubles), size(static_cast<uint32_t>(v.size())), doubles(v.data()) {}                       // NOLINT
  CallArg(ArrayRef<bool> v) : kind(Kind::Bools), size(static_cast<uint32_t>(v.size())), bools(v.data()) {}     // NOLINT
  CallArg(std::string_view v) : kind(Kind::String), size(static_cast<uint32_t>(v.size())), chars(v.data()) {}  // NOLINT
  CallArg(const char* v) : CallArg(std::string_view(v)) {}                                                     // NOLINT
  CallArg(DType v) : kind(Kind::DType), integer(static_cast<int64_t>(v)) {}                                    // NOLINT
  CallArg(Layout v) : kind(Kind::Layout), integer(static_cast<int64_t>(v)) {}                                  // NOLINT
  /// The type in the low byte, the index + 1 above it.
  CallArg(Device v)
      : kind(Kind::Device), integer(static_cast<int64_t>(v.type()) | (v.index() + int64_t{1}) << 8) {}  // NOLINT
  CallArg(MemoryFormat v) : kind(Kind::MemoryFormat), integer(static_cast<int64_t>(v)) {}               // NOLINT
  CallArg(const Generator& v) : kind(Kind::Generator), generator(&v) {}                                 // NOLINT
  template <class T>
  CallArg(const std::optional<T>& v) : CallArg() {  // NOLINT
    if (v) *this = CallArg(*v);
  }
  template <class T>
  CallArg(const OptionalArrayRef<T>& v) : CallArg() {  // NOLINT
    if (v) *this = CallArg(*v);
  }
};

/// An argument that is given by its parameter's name.
struct NamedArg {
  std::string_view name;
  CallArg value;
};

/// Calls an operator of the table: "aten::gelu", "aten::add.Tensor", in place "aten::add_.Tensor". Arguments in the schema's
/// order; missing ones have their default. Results in the schema's order, a Tensor[] result as its items.
/// brasa::Error if there is no such operator, or the arguments do not fit its schema.
BRASA_API std::vector<Tensor> call(std::string_view name, ArrayRef<CallArg> args);
/// The same with keyword arguments: call("aten::gelu", {x}, {{"approximate", "tanh"}}). A tensor `out`, or a list of them, takes an
/// operator's results: each is resized to its result and returned.
BRASA_API std::vector<Tensor> call(std::string_view name, ArrayRef<CallArg> args, ArrayRef<NamedArg> named);
/// Whether `call` knows an operator of this name.
BRASA_API bool has_operator(std::string_view name);
/// "aten::gelu(Tensor self, *, str approximate='none') -> Tensor"; brasa::Error if there is no such operator.
BRASA_API std::string schema_of(std::string_view name);

}  // namespace brasa
