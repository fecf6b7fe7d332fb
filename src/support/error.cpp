#include "support/error.h"

#include <string_view>
#include <utility>

#include "support/failed_check.h"

namespace brasa {

Error::Error(const std::string& message) : std::runtime_error(message), mistake_(message) {}
Error::Error(const std::string& message, std::string mistake)
    : std::runtime_error(message), mistake_(std::move(mistake)) {}
Error::~Error() = default;
IndexError::IndexError(const std::string& message) : Error(message) {}
IndexError::IndexError(const std::string& message, std::string mistake) : Error(message, std::move(mistake)) {}
IndexError::~IndexError() = default;
ValueError::ValueError(const std::string& message) : Error(message) {}
ValueError::ValueError(const std::string& message, std::string mistake) : Error(message, std::move(mistake)) {}
ValueError::~ValueError() = default;
TypeError::TypeError(const std::string& message) : Error(message) {}
TypeError::TypeError(const std::string& message, std::string mistake) : Error(message, std::move(mistake)) {}
TypeError::~TypeError() = default;
NotImplementedError::NotImplementedError(const std::string& message) : Error(message) {}
NotImplementedError::NotImplementedError(const std::string& message, std::string mistake)
    : Error(message, std::move(mistake)) {}
NotImplementedError::~NotImplementedError() = default;
LinAlgError::LinAlgError(const std::string& message) : Error(message) {}
LinAlgError::LinAlgError(const std::string& message, std::string mistake) : Error(message, std::move(mistake)) {}
LinAlgError::~LinAlgError() = default;
OutOfMemoryError::OutOfMemoryError(const std::string& message) : Error(message) {}
OutOfMemoryError::~OutOfMemoryError() = default;
InternalError::InternalError(const std::string& message)
    : std::runtime_error("internal error (a bug in Brasa): " + message) {}
InternalError::~InternalError() = default;

void fail(std::string message) { throw Error(message); }
void fail_index(std::string message) { throw IndexError(message); }
void fail_checked(std::string message) {
  auto says = [&](std::string_view words) { return message.find(words) != message.npos; };
  if (says("linalg.")) throw LinAlgError(message);
  if (says("out of range") || says("out of bounds")) fail_index(message);
  fail(message);
}
void fail_internal(std::string message) { throw InternalError(message); }

}  // namespace brasa
