# pack.bin: the common kernels, compiled when the library is built. `brasa-pack --out FILE` uses the same compiler as the library.
# Builds with sanitizers have none: every kernel of their tests goes through the code generator.
brasa_sources(pack_sources ${CMAKE_SOURCE_DIR}/tools/pack)
if(NOT pack_sources OR NOT TARGET brasa_tensor OR NOT TARGET brasa_codegen OR BRASA_SANITIZE)
  return()
endif()

set(BRASA_PACK ${CMAKE_BINARY_DIR}/lib/brasa/pack.bin)
add_executable(brasa-pack ${pack_sources})
brasa_sees_sources(brasa-pack)
target_link_libraries(brasa-pack PRIVATE brasa_tensor CLI11::CLI11 fmt::fmt)
add_custom_command(
  OUTPUT ${BRASA_PACK}
  COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/lib/brasa
  COMMAND ${CMAKE_COMMAND} -E env BRASA_CODEGEN=$<TARGET_FILE:brasa_codegen> BRASA_CACHE_DIR= $<TARGET_FILE:brasa-pack> --out ${BRASA_PACK}
  DEPENDS brasa-pack brasa_codegen
  COMMENT "Compiling the kernel pack"
  VERBATIM)
add_custom_target(brasa_pack_file ALL DEPENDS ${BRASA_PACK})

# Measures the first calls of operators that are not in the pack.
brasa_sources(cold_sources ${CMAKE_SOURCE_DIR}/tools/cold)
add_executable(brasa-cold ${cold_sources} ${CMAKE_SOURCE_DIR}/tools/pack/sample_call.cpp)
brasa_sees_sources(brasa-cold)
target_include_directories(brasa-cold PRIVATE ${CMAKE_SOURCE_DIR}/tools/pack)
target_link_libraries(brasa-cold PRIVATE brasa_tensor nlohmann_json::nlohmann_json CLI11::CLI11 fmt::fmt)
add_dependencies(brasa-cold brasa_pack_file brasa_codegen)

# What a first visit needs: the library with its plugin and its pack, and the demo.
if(TARGET brasa-demo)
  add_custom_target(demo DEPENDS brasa-demo brasa_pack_file)
endif()
