# How a program's results are seen and compared.
target_sources(${target} PRIVATE ${CMAKE_SOURCE_DIR}/tests/capture/situations.cpp)
