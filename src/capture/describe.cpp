#include "capture/describe.h"

namespace brasa::capture {
namespace {

std::string describe(const Event* e) {
  if (!e) return "the end";
  return e->row ? str("operator ", e->row->name()) : str("an input ", e->guard);
}

}  // namespace

std::string difference(const Event* came, const Event* expected) {
  if (came && expected && came->row && came->row == expected->row) {
    const auto& params = came->row->schema.params;
    for (size_t i = 0; i < came->args.size(); ++i)
      if (!(came->args[i] == expected->args[i]))
        return str(came->row->name(), ": another value for '", params[i].name, "'");
  }
  return str(describe(came), " where ", describe(expected), " was expected");
}

}  // namespace brasa::capture
