#pragma once

#include <stdexcept>
#include <string>

#include <brasa/export.h>

namespace brasa {

/// A mistake of the caller: the message names the operator, what was given and what was expected.
class BRASA_API Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message);
  /// With the mistake alone, where `message` also says in which call it happened.
  Error(const std::string& message, std::string mistake);
  ~Error() override;
  const std::string& msg() const { return mistake_; }
  const char* what_without_backtrace() const noexcept { return mistake_.c_str(); }

 private:
  std::string mistake_;
};

/// An index outside its range. A subtype, so that range loops and bindings can tell it apart.
class BRASA_API IndexError : public Error {
 public:
  explicit IndexError(const std::string& message);
  IndexError(const std::string& message, std::string mistake);
  ~IndexError() override;
};

// Other kinds that a program may throw and tell apart.
#define BRASA_ERROR_KIND(Kind)                             \
  class BRASA_API Kind : public Error {                    \
   public:                                                 \
    explicit Kind(const std::string& message);             \
    Kind(const std::string& message, std::string mistake); \
    ~Kind() override;                                      \
  }
BRASA_ERROR_KIND(ValueError);
BRASA_ERROR_KIND(TypeError);
BRASA_ERROR_KIND(NotImplementedError);
BRASA_ERROR_KIND(LinAlgError);
BRASA_ERROR_KIND(OutOfMemoryError);
#undef BRASA_ERROR_KIND

/// A bug of Brasa's own. The message carries the graph's text where there is one.
class BRASA_API InternalError : public std::runtime_error {
 public:
  explicit InternalError(const std::string& message);
  ~InternalError() override;
};

}  // namespace brasa
