# Writes `output`: a hash of the sources that `list` names, one a line, and of LLVM's version.
file(STRINGS ${list} sources)
set(hashes "LLVM ${llvm}")
foreach(source ${sources})
  file(SHA256 ${source} hash)
  string(APPEND hashes ${hash})
endforeach()
string(SHA256 hash "${hashes}")
string(SUBSTRING ${hash} 0 16 hash)
file(CONFIGURE OUTPUT ${output} CONTENT "#include \"compiler/version.h\"

namespace brasa::compiler {

const std::string_view kCompilerVersion = \"brasa-${hash}\";

}  // namespace brasa::compiler
")
