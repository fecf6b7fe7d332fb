# Samples and the interpreter's answers come from the table's own tests; samples become calls as the pack's do, and outcomes are
# compared as the command does it.
foreach(source samples interpreted)
  target_sources(${target} PRIVATE ${CMAKE_SOURCE_DIR}/tests/ops/${source}.cpp)
endforeach()
foreach(source vectors files compare gauge)
  target_sources(${target} PRIVATE ${CMAKE_SOURCE_DIR}/tools/brasa/${source}.cpp)
endforeach()
target_sources(${target} PRIVATE ${CMAKE_SOURCE_DIR}/tools/pack/sample_call.cpp)
target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/tests/ops ${CMAKE_SOURCE_DIR}/tools/brasa
                                             ${CMAKE_SOURCE_DIR}/tools)

# Sanitizers take ten times as long.
if(BRASA_SANITIZE)
  target_compile_definitions(${target} PRIVATE BRASA_ONE_ROW_OF=10)
else()
  target_compile_definitions(${target} PRIVATE BRASA_ONE_ROW_OF=1)
endif()
