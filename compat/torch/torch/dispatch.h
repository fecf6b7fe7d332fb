#pragma once

#include <complex>

#include <brasa/options.h>
#include <brasa/scalar.h>
#include <torch/macros.h>

// A body for each dtype, in which `scalar_t` is the element's type:
//
//     AT_DISPATCH_FLOATING_TYPES(t.scalar_type(), "name", [&] { scalar_t* p = t.data_ptr<scalar_t>(); ... });
namespace c10 {
namespace impl {
template <::brasa::DType>
struct ScalarTypeToCPPType;
#define BRASA_CPP_TYPE(Name, Type)                   \
  template <>                                        \
  struct ScalarTypeToCPPType<::brasa::DType::Name> { \
    using type = Type;                               \
  };
BRASA_FORALL_DTYPES(BRASA_CPP_TYPE)
#undef BRASA_CPP_TYPE
template <::brasa::DType D>
using ScalarTypeToCPPTypeT = typename ScalarTypeToCPPType<D>::type;
}  // namespace impl
template <class T>
struct CppTypeToScalarType : std::integral_constant<::brasa::DType, ::brasa::dtype_for<T>::value> {};
}  // namespace c10

#define AT_DISPATCH_CASE(enum_type, ...)                                            \
  case enum_type: {                                                                 \
    using scalar_t [[maybe_unused]] = ::c10::impl::ScalarTypeToCPPTypeT<enum_type>; \
    return __VA_ARGS__();                                                           \
  }
#define AT_DISPATCH_SWITCH(TYPE, NAME, ...)                                                                 \
  [&] {                                                                                                     \
    const ::brasa::DType dispatched_ = TYPE;                                                                \
    switch (dispatched_) {                                                                                  \
      __VA_ARGS__                                                                                           \
      default: TORCH_CHECK_NOT_IMPLEMENTED(false, '"', NAME, "\" not implemented for '", dispatched_, "'"); \
    }                                                                                                       \
  }()
#define AT_DISPATCH_CASE_FLOATING_TYPES(...)             \
  AT_DISPATCH_CASE(::brasa::DType::Float64, __VA_ARGS__) \
  AT_DISPATCH_CASE(::brasa::DType::Float32, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES(TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__))
#define AT_DISPATCH_CASE_FLOATING_TYPES_AND_HALF(...)    \
  AT_DISPATCH_CASE(::brasa::DType::Float64, __VA_ARGS__) \
  AT_DISPATCH_CASE(::brasa::DType::Float32, __VA_ARGS__) \
  AT_DISPATCH_CASE(::brasa::DType::Float16, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND_HALF(TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_FLOATING_TYPES_AND_HALF(__VA_ARGS__))
#define AT_DISPATCH_CASE_REDUCED_FLOATING_TYPES(...)     \
  AT_DISPATCH_CASE(::brasa::DType::Float16, __VA_ARGS__) \
  AT_DISPATCH_CASE(::brasa::DType::BFloat16, __VA_ARGS__)
#define AT_DISPATCH_REDUCED_FLOATING_TYPES(TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_REDUCED_FLOATING_TYPES(__VA_ARGS__))
#define AT_DISPATCH_CASE_COMPLEX_TYPES(...)                 \
  AT_DISPATCH_CASE(::brasa::DType::Complex128, __VA_ARGS__) \
  AT_DISPATCH_CASE(::brasa::DType::Complex64, __VA_ARGS__)
#define AT_DISPATCH_COMPLEX_TYPES(TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_COMPLEX_TYPES(__VA_ARGS__))
#define AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES(...)    \
  AT_DISPATCH_CASE(::brasa::DType::Float64, __VA_ARGS__)    \
  AT_DISPATCH_CASE(::brasa::DType::Float32, __VA_ARGS__)    \
  AT_DISPATCH_CASE(::brasa::DType::Complex128, __VA_ARGS__) \
  AT_DISPATCH_CASE(::brasa::DType::Complex64, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES(TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES(__VA_ARGS__))
#define AT_DISPATCH_CASE_INTEGRAL_TYPES(...)           \
  AT_DISPATCH_CASE(::brasa::DType::UInt8, __VA_ARGS__) \
  AT_DISPATCH_CASE(::brasa::DType::Int8, __VA_ARGS__)  \
  AT_DISPATCH_CASE(::brasa::DType::Int32, __VA_ARGS__) \
  AT_DISPATCH_CASE(::brasa::DType::Int64, __VA_ARGS__) \
  AT_DISPATCH_CASE(::brasa::DType::Int16, __VA_ARGS__)
#define AT_DISPATCH_INTEGRAL_TYPES(TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_INTEGRAL_TYPES(__VA_ARGS__))
#define AT_DISPATCH_CASE_ALL_TYPES(...)                  \
  AT_DISPATCH_CASE(::brasa::DType::UInt8, __VA_ARGS__)   \
  AT_DISPATCH_CASE(::brasa::DType::Int8, __VA_ARGS__)    \
  AT_DISPATCH_CASE(::brasa::DType::Int32, __VA_ARGS__)   \
  AT_DISPATCH_CASE(::brasa::DType::Int64, __VA_ARGS__)   \
  AT_DISPATCH_CASE(::brasa::DType::Int16, __VA_ARGS__)   \
  AT_DISPATCH_CASE(::brasa::DType::Float64, __VA_ARGS__) \
  AT_DISPATCH_CASE(::brasa::DType::Float32, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES(TYPE, NAME, ...) AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__))
#define AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX(...)         \
  AT_DISPATCH_CASE(::brasa::DType::UInt8, __VA_ARGS__)      \
  AT_DISPATCH_CASE(::brasa::DType::Int8, __VA_ARGS__)       \
  AT_DISPATCH_CASE(::brasa::DType::Int32, __VA_ARGS__)      \
  AT_DISPATCH_CASE(::brasa::DType::Int64, __VA_ARGS__)      \
  AT_DISPATCH_CASE(::brasa::DType::Int16, __VA_ARGS__)      \
  AT_DISPATCH_CASE(::brasa::DType::Float64, __VA_ARGS__)    \
  AT_DISPATCH_CASE(::brasa::DType::Float32, __VA_ARGS__)    \
  AT_DISPATCH_CASE(::brasa::DType::Complex128, __VA_ARGS__) \
  AT_DISPATCH_CASE(::brasa::DType::Complex64, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX(TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX(__VA_ARGS__))
#define AT_DISPATCH_CASE_FLOATING_TYPES_AND(TYPE1, ...) \
  AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__)          \
  AT_DISPATCH_CASE(TYPE1, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND(TYPE1, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_FLOATING_TYPES_AND(TYPE1, __VA_ARGS__))
#define AT_DISPATCH_CASE_FLOATING_TYPES_AND2(TYPE1, TYPE2, ...) \
  AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__)                  \
  AT_DISPATCH_CASE(TYPE1, __VA_ARGS__)                          \
  AT_DISPATCH_CASE(TYPE2, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND2(TYPE1, TYPE2, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_FLOATING_TYPES_AND2(TYPE1, TYPE2, __VA_ARGS__))
#define AT_DISPATCH_CASE_FLOATING_TYPES_AND3(TYPE1, TYPE2, TYPE3, ...) \
  AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__)                         \
  AT_DISPATCH_CASE(TYPE1, __VA_ARGS__)                                 \
  AT_DISPATCH_CASE(TYPE2, __VA_ARGS__)                                 \
  AT_DISPATCH_CASE(TYPE3, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND3(TYPE1, TYPE2, TYPE3, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_FLOATING_TYPES_AND3(TYPE1, TYPE2, TYPE3, __VA_ARGS__))
#define AT_DISPATCH_CASE_FLOATING_TYPES_AND4(TYPE1, TYPE2, TYPE3, TYPE4, ...) \
  AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__)                                \
  AT_DISPATCH_CASE(TYPE1, __VA_ARGS__)                                        \
  AT_DISPATCH_CASE(TYPE2, __VA_ARGS__)                                        \
  AT_DISPATCH_CASE(TYPE3, __VA_ARGS__)                                        \
  AT_DISPATCH_CASE(TYPE4, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND4(TYPE1, TYPE2, TYPE3, TYPE4, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_FLOATING_TYPES_AND4(TYPE1, TYPE2, TYPE3, TYPE4, __VA_ARGS__))
#define AT_DISPATCH_CASE_COMPLEX_TYPES_AND(TYPE1, ...) \
  AT_DISPATCH_CASE_COMPLEX_TYPES(__VA_ARGS__)          \
  AT_DISPATCH_CASE(TYPE1, __VA_ARGS__)
#define AT_DISPATCH_COMPLEX_TYPES_AND(TYPE1, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_COMPLEX_TYPES_AND(TYPE1, __VA_ARGS__))
#define AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES_AND1(TYPE1, ...) \
  AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES(__VA_ARGS__)           \
  AT_DISPATCH_CASE(TYPE1, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND1(TYPE1, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES_AND1(TYPE1, __VA_ARGS__))
#define AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES_AND2(TYPE1, TYPE2, ...) \
  AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES(__VA_ARGS__)                  \
  AT_DISPATCH_CASE(TYPE1, __VA_ARGS__)                                      \
  AT_DISPATCH_CASE(TYPE2, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND2(TYPE1, TYPE2, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES_AND2(TYPE1, TYPE2, __VA_ARGS__))
#define AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES_AND3(TYPE1, TYPE2, TYPE3, ...) \
  AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES(__VA_ARGS__)                         \
  AT_DISPATCH_CASE(TYPE1, __VA_ARGS__)                                             \
  AT_DISPATCH_CASE(TYPE2, __VA_ARGS__)                                             \
  AT_DISPATCH_CASE(TYPE3, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND3(TYPE1, TYPE2, TYPE3, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES_AND3(TYPE1, TYPE2, TYPE3, __VA_ARGS__))
#define AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES_AND4(TYPE1, TYPE2, TYPE3, TYPE4, ...) \
  AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES(__VA_ARGS__)                                \
  AT_DISPATCH_CASE(TYPE1, __VA_ARGS__)                                                    \
  AT_DISPATCH_CASE(TYPE2, __VA_ARGS__)                                                    \
  AT_DISPATCH_CASE(TYPE3, __VA_ARGS__)                                                    \
  AT_DISPATCH_CASE(TYPE4, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND4(TYPE1, TYPE2, TYPE3, TYPE4, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                                                 \
                     AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES_AND4(TYPE1, TYPE2, TYPE3, TYPE4, __VA_ARGS__))
#define AT_DISPATCH_CASE_INTEGRAL_TYPES_AND(TYPE1, ...) \
  AT_DISPATCH_CASE_INTEGRAL_TYPES(__VA_ARGS__)          \
  AT_DISPATCH_CASE(TYPE1, __VA_ARGS__)
#define AT_DISPATCH_INTEGRAL_TYPES_AND(TYPE1, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_INTEGRAL_TYPES_AND(TYPE1, __VA_ARGS__))
#define AT_DISPATCH_CASE_ALL_TYPES_AND(TYPE1, ...) \
  AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__)          \
  AT_DISPATCH_CASE(TYPE1, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND(TYPE1, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_ALL_TYPES_AND(TYPE1, __VA_ARGS__))
#define AT_DISPATCH_CASE_ALL_TYPES_AND2(TYPE1, TYPE2, ...) \
  AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__)                  \
  AT_DISPATCH_CASE(TYPE1, __VA_ARGS__)                     \
  AT_DISPATCH_CASE(TYPE2, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND2(TYPE1, TYPE2, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_ALL_TYPES_AND2(TYPE1, TYPE2, __VA_ARGS__))
#define AT_DISPATCH_CASE_ALL_TYPES_AND3(TYPE1, TYPE2, TYPE3, ...) \
  AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__)                         \
  AT_DISPATCH_CASE(TYPE1, __VA_ARGS__)                            \
  AT_DISPATCH_CASE(TYPE2, __VA_ARGS__)                            \
  AT_DISPATCH_CASE(TYPE3, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND3(TYPE1, TYPE2, TYPE3, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_ALL_TYPES_AND3(TYPE1, TYPE2, TYPE3, __VA_ARGS__))
#define AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX_AND(TYPE1, ...) \
  AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX(__VA_ARGS__)          \
  AT_DISPATCH_CASE(TYPE1, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND(TYPE1, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX_AND(TYPE1, __VA_ARGS__))
#define AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX_AND2(TYPE1, TYPE2, ...) \
  AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX(__VA_ARGS__)                  \
  AT_DISPATCH_CASE(TYPE1, __VA_ARGS__)                                 \
  AT_DISPATCH_CASE(TYPE2, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND2(TYPE1, TYPE2, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX_AND2(TYPE1, TYPE2, __VA_ARGS__))
#define AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX_AND3(TYPE1, TYPE2, TYPE3, ...) \
  AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX(__VA_ARGS__)                         \
  AT_DISPATCH_CASE(TYPE1, __VA_ARGS__)                                        \
  AT_DISPATCH_CASE(TYPE2, __VA_ARGS__)                                        \
  AT_DISPATCH_CASE(TYPE3, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND3(TYPE1, TYPE2, TYPE3, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX_AND3(TYPE1, TYPE2, TYPE3, __VA_ARGS__))
#define AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX_AND4(TYPE1, TYPE2, TYPE3, TYPE4, ...) \
  AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX(__VA_ARGS__)                                \
  AT_DISPATCH_CASE(TYPE1, __VA_ARGS__)                                               \
  AT_DISPATCH_CASE(TYPE2, __VA_ARGS__)                                               \
  AT_DISPATCH_CASE(TYPE3, __VA_ARGS__)                                               \
  AT_DISPATCH_CASE(TYPE4, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND4(TYPE1, TYPE2, TYPE3, TYPE4, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX_AND4(TYPE1, TYPE2, TYPE3, TYPE4, __VA_ARGS__))
#define AT_DISPATCH_INDEX_TYPES(TYPE, NAME, ...)                                                             \
  [&] {                                                                                                      \
    const ::brasa::DType dispatched_ = TYPE;                                                                 \
    if (dispatched_ == ::brasa::DType::Int32) {                                                              \
      using index_t [[maybe_unused]] = int32_t;                                                              \
      return __VA_ARGS__();                                                                                  \
    }                                                                                                        \
    TORCH_CHECK_NOT_IMPLEMENTED(dispatched_ == ::brasa::DType::Int64, '"', NAME, "\" not implemented for '", \
                                dispatched_, "'");                                                           \
    using index_t [[maybe_unused]] = int64_t;                                                                \
    return __VA_ARGS__();                                                                                    \
  }()
