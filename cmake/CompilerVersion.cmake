# Writes `output`: hashes of the sources that `list` names, one a line, and of LLVM's version, and of those that `pipeline` names.
function(hash_sources list start result)
  file(STRINGS ${list} sources)
  set(hashes "${start}")
  foreach(source ${sources})
    file(SHA256 ${source} hash)
    string(APPEND hashes ${hash})
  endforeach()
  string(SHA256 hash "${hashes}")
  string(SUBSTRING ${hash} 0 16 hash)
  set(${result} ${hash} PARENT_SCOPE)
endfunction()

hash_sources(${list} "LLVM ${llvm}" compiler)
hash_sources(${pipeline} "" pipeline)
file(CONFIGURE OUTPUT ${output} CONTENT "#include \"compiler/version.h\"

namespace brasa::compiler {

const std::string_view kCompilerVersion = \"brasa-${compiler}\";
const std::string_view kPipelineVersion = \"${pipeline}\";

}  // namespace brasa::compiler
")
