# A code generator that fails as it is told.
set(fakes ${CMAKE_BINARY_DIR}/tests/fakes)
add_library(fake_codegen MODULE ${CMAKE_SOURCE_DIR}/tests/fakes/codegen.cpp)
brasa_sees_sources(fake_codegen)
set_target_properties(fake_codegen PROPERTIES PREFIX "" OUTPUT_NAME codegen LIBRARY_OUTPUT_DIRECTORY ${fakes})
add_dependencies(${target} fake_codegen)
set_property(SOURCE ${dir}/codegen_test.cpp APPEND PROPERTY COMPILE_DEFINITIONS BRASA_FAKES="${fakes}")
