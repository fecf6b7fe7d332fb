#include <brasa/data/prefetcher.h>

namespace brasa::data {

WorkerException::WorkerException(std::exception_ptr original)
    : message("Caught exception in DataLoader worker thread."), original_exception(std::move(original)) {
  try {
    std::rethrow_exception(original_exception);
  } catch (const std::exception& e) {
    message += std::string(" Original message: ") + e.what();
  } catch (...) {
  }
}
WorkerException::~WorkerException() = default;

}  // namespace brasa::data
