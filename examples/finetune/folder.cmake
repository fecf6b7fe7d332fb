# The digits are the demo's.
target_sources(${target} PRIVATE ${CMAKE_SOURCE_DIR}/examples/vit_digits/digits.cpp)
