# The programs in README.md and docs/*.md are compiled and run, so that they stay right (see tests/docs/README.md). One that includes
# <brasa/...> links libbrasa; the others are plain C++.
file(GLOB pages CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/README.md ${CMAKE_SOURCE_DIR}/docs/*.md)
# They run in a folder of their own, which has an exported program and a photograph.
configure_file(${CMAKE_SOURCE_DIR}/tests/data/models/dynamic_batch.pt2 ${CMAKE_BINARY_DIR}/docs/net.pt2 COPYONLY)
configure_file(${CMAKE_SOURCE_DIR}/examples/captioning/flower.jpg ${CMAKE_BINARY_DIR}/docs/flower.jpg COPYONLY)
set(extract ${CMAKE_SOURCE_DIR}/scripts/doc_program)
foreach(page ${pages})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${page})
  get_filename_component(stem ${page} NAME_WE)
  string(TOLOWER ${stem} stem)
  execute_process(COMMAND ${extract} ${page} OUTPUT_VARIABLE names COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "[^\n]+" names "${names}")
  foreach(name ${names})
    execute_process(COMMAND ${extract} ${page} ${name} OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
    execute_process(COMMAND ${extract} ${page} ${name} output OUTPUT_VARIABLE output COMMAND_ERROR_IS_FATAL ANY)
    if(text MATCHES "#include <brasa/" AND NOT TARGET brasa)
      continue()
    endif()

    set(base ${CMAKE_BINARY_DIR}/docs/${stem}_${name})
    file(CONFIGURE OUTPUT ${base}.cpp CONTENT "${text}" @ONLY)
    file(CONFIGURE OUTPUT ${base}.txt CONTENT "${output}" @ONLY)
    set(target doc_${stem}_${name})
    add_executable(${target} ${base}.cpp)
    target_compile_options(${target} PRIVATE -Werror)
    set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/docs)
    if(text MATCHES "#include <brasa/")
      target_link_libraries(${target} PRIVATE brasa)
    endif()
    add_test(NAME docs.${stem}.${name}
             COMMAND ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:${target}> -DEXPECTED=${base}.txt
                     -P ${CMAKE_SOURCE_DIR}/tests/docs/run.cmake)
    set_tests_properties(docs.${stem}.${name} PROPERTIES TIMEOUT 120 WORKING_DIRECTORY ${CMAKE_BINARY_DIR}/docs
                         ENVIRONMENT "${test_environment}")
  endforeach()
endforeach()
