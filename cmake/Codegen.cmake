# libbrasa-codegen.so: src/compiler/targets with LLVM inside. libbrasa.so loads it when a kernel has to be compiled, so that a
# program whose kernels are all in the pack or in the disk cache does not pay for mapping LLVM.
brasa_sources(codegen_sources ${CMAKE_SOURCE_DIR}/src/compiler/targets)
if(NOT codegen_sources)
  return()
endif()

set(LLVM_FOUND FALSE)
foreach(version 19 20 21 18 17 16)
  find_package(LLVM ${version} CONFIG QUIET HINTS /usr/lib/llvm-${version}/lib/cmake/llvm NO_DEFAULT_PATH)
  if(LLVM_FOUND)
    break()
  endif()
endforeach()
if(NOT LLVM_FOUND)
  find_package(LLVM CONFIG QUIET)
endif()
if(NOT LLVM_FOUND OR LLVM_VERSION_MAJOR LESS 16 OR LLVM_VERSION_MAJOR GREATER 21)
  message(FATAL_ERROR "LLVM 16 to 21 with its headers is needed (Debian and Ubuntu: llvm-19-dev). scripts/setup installs it.")
endif()
message(STATUS "LLVM ${LLVM_PACKAGE_VERSION} from ${LLVM_DIR}")

# The caches' keys name what makes code of a kernel's text.
file(GLOB_RECURSE version_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/compiler/loops/*.h ${CMAKE_SOURCE_DIR}/src/compiler/loops/*.cpp
     ${CMAKE_SOURCE_DIR}/src/compiler/targets/*.h ${CMAKE_SOURCE_DIR}/src/compiler/targets/*.cpp)
string(REPLACE ";" "\n" version_list "${version_sources}")
file(CONFIGURE OUTPUT ${BRASA_GENERATED_DIR}/compiler_sources.txt CONTENT "${version_list}\n")
set(pipeline_folders compiler ir ops transforms)
list(TRANSFORM pipeline_folders PREPEND ${CMAKE_SOURCE_DIR}/src/)
list(TRANSFORM pipeline_folders APPEND /*.h OUTPUT_VARIABLE pipeline_headers)
list(TRANSFORM pipeline_folders APPEND /*.cpp)
file(GLOB_RECURSE pipeline_sources CONFIGURE_DEPENDS ${pipeline_headers} ${pipeline_folders})
# What passes read of other folders.
list(APPEND pipeline_sources ${CMAKE_SOURCE_DIR}/src/runtime/device.h ${CMAKE_SOURCE_DIR}/include/brasa/dtype.h)
string(REPLACE ";" "\n" pipeline_list "${pipeline_sources}")
file(CONFIGURE OUTPUT ${BRASA_GENERATED_DIR}/pipeline_sources.txt CONTENT "${pipeline_list}\n")
set(version_file ${BRASA_GENERATED_DIR}/compiler_version.cpp)
set(version_script ${CMAKE_CURRENT_LIST_DIR}/CompilerVersion.cmake)
add_custom_command(
  OUTPUT ${version_file}
  COMMAND ${CMAKE_COMMAND} -Doutput=${version_file} -Dlist=${BRASA_GENERATED_DIR}/compiler_sources.txt
          -Dpipeline=${BRASA_GENERATED_DIR}/pipeline_sources.txt -Dllvm=${LLVM_PACKAGE_VERSION}
          -P ${version_script}
  DEPENDS ${version_sources} ${pipeline_sources} ${version_script} ${BRASA_GENERATED_DIR}/compiler_sources.txt
          ${BRASA_GENERATED_DIR}/pipeline_sources.txt
  VERBATIM)
target_sources(brasa_compiler PRIVATE ${version_file})

if(TARGET LLVMX86CodeGen)
  # A distribution's LLVM may lack a target or a library of another version; what is not referenced is not linked.
  set(llvm_libraries "")
  foreach(library Core Support Passes Target TargetParser MC OrcJIT JITLink Object BitReader BitWriter X86CodeGen X86AsmParser
                  X86Desc X86Info NVPTXCodeGen NVPTXDesc NVPTXInfo AArch64CodeGen AArch64AsmParser AArch64Desc AArch64Info)
    if(TARGET LLVM${library})
      list(APPEND llvm_libraries LLVM${library})
    endif()
  endforeach()
else()
  set(llvm_libraries LLVM)
endif()

add_library(brasa_codegen MODULE ${codegen_sources})
set_target_properties(brasa_codegen PROPERTIES OUTPUT_NAME brasa-codegen PREFIX lib)
brasa_sees_sources(brasa_codegen)
separate_arguments(llvm_definitions NATIVE_COMMAND "${LLVM_DEFINITIONS}")
target_compile_definitions(brasa_codegen PRIVATE ${llvm_definitions})
target_include_directories(brasa_codegen SYSTEM PRIVATE ${LLVM_INCLUDE_DIRS})
target_link_libraries(brasa_codegen PRIVATE ${llvm_libraries} brasa_external)
foreach(folder compiler ir support)
  if(TARGET brasa_${folder})
    target_link_libraries(brasa_codegen PRIVATE brasa_${folder})
  endif()
endforeach()
target_link_options(brasa_codegen PRIVATE -Wl,--exclude-libs,ALL $<$<CONFIG:Release>:-Wl,--strip-all>)
