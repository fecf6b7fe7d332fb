# The C++ function that brasa-gen would write.
target_sources(${target} PRIVATE ${CMAKE_SOURCE_DIR}/tools/gen/signature.cpp)
target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/tools/gen)
