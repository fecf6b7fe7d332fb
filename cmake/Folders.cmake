# One static library `brasa_<folder>` for each line of folders.txt whose folder has sources, linked along the arrows.
# A folder that needs more (a library of its own) says so in src/<folder>/folder.cmake.
set(BRASA_ARROWS ${CMAKE_CURRENT_LIST_DIR}/folders.txt)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${BRASA_ARROWS})
file(STRINGS ${BRASA_ARROWS} lines REGEX "^[a-z]+:")

# The generated API is written by brasa-gen, which is made from the operator table; these folders see it.
set(BRASA_ABOVE_GENERATED "")
set(BRASA_FOLDERS "")
set(BRASA_TARGETS "")

function(brasa_sources out dir)
  file(GLOB_RECURSE found CONFIGURE_DEPENDS ${dir}/*.cpp)
  set(${out} ${found} PARENT_SCOPE)
endfunction()

function(brasa_sees_sources target)
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include
                                               ${BRASA_GENERATED_DIR}/include)
endfunction()

foreach(line ${lines})
  string(REGEX MATCH "^([a-z]+):(.*)$" _ "${line}")
  set(folder ${CMAKE_MATCH_1})
  separate_arguments(uses UNIX_COMMAND "${CMAKE_MATCH_2}")

  # What the folder reaches, over folders that may have no sources yet.
  set(reach "")
  foreach(use ${uses})
    list(APPEND reach ${use} ${reach_${use}})
  endforeach()
  list(REMOVE_DUPLICATES reach)
  set(reach_${folder} ${reach})

  brasa_sources(sources ${CMAKE_SOURCE_DIR}/src/${folder})
  if(folder STREQUAL "compiler")
    list(FILTER sources EXCLUDE REGEX "/src/compiler/targets/")
  endif()
  if(NOT sources)
    continue()
  endif()

  set(target brasa_${folder})
  add_library(${target} STATIC ${sources})
  brasa_sees_sources(${target})
  if(BRASA_RUNS_ONCE AND folder MATCHES "^(amp|export|func|import|nn|ops|optim)$")
    target_precompile_headers(${target} REUSE_FROM brasa_row_headers)
    target_compile_options(${target} PRIVATE ${BRASA_RUNS_ONCE})
    # But the interpreter's loops run for each element.
    list(FILTER sources INCLUDE REGEX "/ops/primitives/(contraction|dense|interp|movement|pointwise|reduction)")
    if(sources)
      set_source_files_properties(${sources} PROPERTIES COMPILE_OPTIONS -O1 SKIP_PRECOMPILE_HEADERS ON)
    endif()
  else()
    target_precompile_headers(${target} REUSE_FROM brasa_headers)
  endif()
  target_link_libraries(${target} PUBLIC brasa_external)
  foreach(use ${reach})
    if(TARGET brasa_${use})
      target_link_libraries(${target} PUBLIC brasa_${use})
    endif()
  endforeach()
  if("ops" IN_LIST reach AND NOT folder MATCHES "^(transforms|compiler)$")
    list(APPEND BRASA_ABOVE_GENERATED ${target})
  endif()
  if(EXISTS ${CMAKE_SOURCE_DIR}/src/${folder}/folder.cmake)
    include(${CMAKE_SOURCE_DIR}/src/${folder}/folder.cmake)
  endif()
  if(folder STREQUAL "compiler" AND BRASA_SANITIZE MATCHES "undefined")
    # Everything in it is inlined into one function for each level of instructions, and checks of each operation take minutes to compile.
    set_source_files_properties(${CMAKE_SOURCE_DIR}/src/compiler/libraries/fourier/lanes.cpp
                                PROPERTIES COMPILE_OPTIONS -fno-sanitize=undefined SKIP_PRECOMPILE_HEADERS ON)
  endif()
  list(APPEND BRASA_FOLDERS ${folder})
  list(APPEND BRASA_TARGETS ${target})
endforeach()

# The operator table written out as C++ functions and Tensor methods.
brasa_sources(gen_sources ${CMAKE_SOURCE_DIR}/tools/gen)
if(gen_sources AND TARGET brasa_ops)
  add_executable(brasa-gen ${gen_sources})
  brasa_sees_sources(brasa-gen)
  target_link_libraries(brasa-gen PRIVATE brasa_ops)
  # Listed as by-products: brasa-gen leaves an unchanged file alone, and then nothing that includes it is rebuilt.
  set(generated ${BRASA_GENERATED_DIR}/include/brasa/ops_generated.h
                ${BRASA_GENERATED_DIR}/include/brasa/tensor_methods.inc
                ${BRASA_GENERATED_DIR}/include/brasa/operator_names.inc
                ${BRASA_GENERATED_DIR}/include/brasa/ops_forwarding.h ${BRASA_GENERATED_DIR}/ops_generated.cpp)
  add_custom_command(
    OUTPUT ${BRASA_GENERATED_DIR}/stamp
    BYPRODUCTS ${generated}
    COMMAND brasa-gen --out ${BRASA_GENERATED_DIR}
    COMMAND ${CMAKE_COMMAND} -E touch ${BRASA_GENERATED_DIR}/stamp
    DEPENDS brasa-gen
    COMMENT "Writing the operators' API"
    VERBATIM)
  add_custom_target(brasa_generated DEPENDS ${BRASA_GENERATED_DIR}/stamp)
  if(TARGET brasa_tensor)
    target_sources(brasa_tensor PRIVATE ${BRASA_GENERATED_DIR}/ops_generated.cpp)
    if(BRASA_RUNS_ONCE)
      set_source_files_properties(${BRASA_GENERATED_DIR}/ops_generated.cpp PROPERTIES COMPILE_OPTIONS "${BRASA_RUNS_ONCE}" SKIP_PRECOMPILE_HEADERS ON)
    endif()
  endif()
  foreach(target ${BRASA_ABOVE_GENERATED})
    add_dependencies(${target} brasa_generated)
  endforeach()
endif()
