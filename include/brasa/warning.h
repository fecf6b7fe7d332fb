#pragma once

#include <cstdint>
#include <string>

#include <brasa/export.h>

/// What a program is told without being stopped. By default it goes to the standard error.
namespace brasa {

struct SourceLocation {
  const char* function;
  const char* file;
  uint32_t line;
};

/// Gets the warnings of its thread in place of the standard error: `Warning::set_warning_handler(&mine)`.
class BRASA_API WarningHandler {
 public:
  virtual ~WarningHandler();
  /// `verbatim`: without the location.
  virtual void process(const SourceLocation& location, const std::string& message, bool verbatim);
};

struct BRASA_API Warning {
  static void warn(const SourceLocation& location, const std::string& message, bool verbatim);
  /// Of this thread; null stands for the default.
  static void set_warning_handler(WarningHandler* handler) noexcept;
  static WarningHandler* get_warning_handler() noexcept;
  /// Whether what warns once in a program warns every time.
  static void set_warnAlways(bool always) noexcept;
  static bool get_warnAlways() noexcept;
};

}  // namespace brasa
