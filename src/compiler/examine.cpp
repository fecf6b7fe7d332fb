#include <brasa/cache.h>
#include <brasa/doctor.h>

#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

#include "compiler/kernels/codegen_client.h"
#include "compiler/kernels/pack.h"
#include "compiler/libraries/lapack.h"
#include "compiler/version.h"
#include "runtime/device.h"
#include "support/str.h"

// What `brasa doctor` shows: the devices' own findings, and the compiler's.
namespace brasa {
namespace {

using State = Finding::State;

Finding code_generator() {
  Finding f{"kernels", "code generator", State::Found, str("build ", compiler::kCompilerVersion), "", ""};
  try {
    f.where = compiler::codegen_path();
  } catch (const Error& e) {
    f.state = State::Missing;
    f.value = e.what();
    f.advice =
        "keep libbrasa-codegen.so of the same build beside libbrasa.so, or name it in BRASA_CODEGEN; without it only kernels of the pack and the disk cache run";
  }
  return f;
}

Finding pack() {
  compiler::PackFacts facts = compiler::facts_of_pack();
  Finding f{"kernels", "pack", State::Found, str(facts.kernels, " kernels"), facts.path, ""};
  if (facts.why_not.empty()) return f;
  f.state = facts.path.empty() ? State::Missing : State::Unusable;
  f.value = facts.why_not;
  f.advice =
      "keep brasa/pack.bin of the same build beside libbrasa.so, or name it in BRASA_PACK; without it first calls compile";
  return f;
}

// Code from it is run, so what others may write to is not used.
Finding disk_cache() {
  cache::Usage u = cache::usage();
  Finding f{"kernels", "disk cache", State::Found, "", u.folder, ""};
  struct stat status;
  if (u.folder.empty()) {
    f.state = State::Missing;
    f.value = "off: no folder is known";
    f.advice = "name a folder in BRASA_CACHE_DIR, so that kernels are compiled once";
    return f;
  }
  f.value = str(u.entries, " entries of this build, ", u.bytes >> 20, " MiB; ", u.old_entries, " of others, ",
                u.old_bytes >> 20, " MiB; limit ", u.limit >> 20, " MiB");
  if (::stat(u.folder.c_str(), &status) != 0) {
    f.value = "empty: it is made when a kernel is compiled";
    return f;
  }
  char mode[8];
  std::snprintf(mode, sizeof mode, "%04o", status.st_mode & 07777);
  f.value += str("; mode ", mode);
  if (status.st_uid != ::geteuid() || (status.st_mode & 022) != 0) {
    f.state = State::Unusable;
    f.value += ": another user owns it or may write to it";
    f.advice = str("chmod go-w ", u.folder, ", or name a folder of your own in BRASA_CACHE_DIR");
  } else if (::access(u.folder.c_str(), W_OK | X_OK) != 0) {
    f.state = State::Unusable;
    f.value += ": it cannot be written";
    f.advice = str("chmod u+wx ", u.folder, ", or name another folder in BRASA_CACHE_DIR");
  }
  return f;
}

Finding lapack() {
  compiler::LapackFacts facts = compiler::facts_of_lapack();
  if (facts.why_not.empty()) return {"kernels", "LAPACK", State::Found, facts.version, facts.path, ""};
  return {
      "kernels",
      "LAPACK",
      State::Missing,
      facts.why_not,
      "",
      "install the package libopenblas0-pthread (liblapack3 is there for more processors, and 4 to 12 times as slow); without it linalg's factorisations are errors"};
}

}  // namespace

std::vector<Finding> examine() {
  std::vector<Finding> out;
  for (const runtime::DeviceRow* row : runtime::device_rows())
    if (row->examine) row->examine(out);
  for (auto* look : {code_generator, pack, disk_cache, lapack}) out.push_back(look());
  return out;
}

}  // namespace brasa
