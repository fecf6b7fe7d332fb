#include <brasa/warning.h>

#include <atomic>
#include <cstdio>

#include "support/lazy.h"

namespace brasa {
namespace {

thread_local WarningHandler* current = nullptr;
std::atomic<bool> always{false};

WarningHandler& standard() {
  static constinit Lazy<WarningHandler> handler;
  return *handler;
}

}  // namespace

WarningHandler::~WarningHandler() = default;

void WarningHandler::process(const SourceLocation& location, const std::string& message, bool verbatim) {
  if (verbatim)
    std::fprintf(stderr, "Warning: %s\n", message.c_str());
  else
    std::fprintf(stderr, "Warning: %s (%s at %s:%u)\n", message.c_str(), location.function, location.file,
                 location.line);
}

void Warning::warn(const SourceLocation& location, const std::string& message, bool verbatim) {
  get_warning_handler()->process(location, message, verbatim);
}
void Warning::set_warning_handler(WarningHandler* handler) noexcept { current = handler; }
WarningHandler* Warning::get_warning_handler() noexcept { return current ? current : &standard(); }
void Warning::set_warnAlways(bool on) noexcept { always = on; }
bool Warning::get_warnAlways() noexcept { return always; }

}  // namespace brasa
