#include "compiler/compile.h"
#include "support/error.h"
#include "support/lazy.h"
#include "support/settings.h"

namespace brasa::compiler {

Numbers numbers_named(std::string_view name) {
  if (name == "strict") return Numbers::Strict;
  if (name == "default") return Numbers::Default;
  if (name == "fast") return Numbers::Fast;
  fail(str("numbers are strict, default or fast, not '", name, "'"));
}

Numbers default_numbers() {
  static constinit Lazy<Numbers> numbers([] {
    const char* name = environment("BRASA_NUMBERS");
    return name && *name ? numbers_named(name) : Numbers::Default;
  });
  return *numbers;
}

}  // namespace brasa::compiler
