# The operators' C++ API as brasa-gen writes it when the table has the toy row. It stands in for the library's own, of which it has
# every function.
set(toy_generated ${CMAKE_BINARY_DIR}/generated_toy)
brasa_sources(toy_gen_sources ${CMAKE_SOURCE_DIR}/tools/gen)
add_executable(brasa-gen-toy ${toy_gen_sources} ${CMAKE_CURRENT_LIST_DIR}/row.cpp)
brasa_sees_sources(brasa-gen-toy)
target_link_libraries(brasa-gen-toy PRIVATE brasa_ops)
add_custom_command(
  OUTPUT ${toy_generated}/ops_generated.cpp
  COMMAND brasa-gen-toy --out ${toy_generated}
  COMMAND ${CMAKE_COMMAND} -E touch ${toy_generated}/ops_generated.cpp
  DEPENDS brasa-gen-toy
  COMMENT "Writing the toy row's API"
  VERBATIM)
target_sources(${target} PRIVATE ${toy_generated}/ops_generated.cpp ${CMAKE_SOURCE_DIR}/tools/gen/signature.cpp)
target_include_directories(${target} BEFORE PRIVATE ${toy_generated}/include)
target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/tools/gen)
