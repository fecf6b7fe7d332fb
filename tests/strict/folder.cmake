# Samples become calls as the pack's do.
target_sources(${target} PRIVATE ${CMAKE_SOURCE_DIR}/tools/pack/sample_call.cpp)
target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/tools)
# The modes in which functions are compiled.
target_sources(${target} PRIVATE ${CMAKE_SOURCE_DIR}/tests/capture/situations.cpp)
