# The reference of the operators (`make docs`): one program for each family runs the examples of its page, and what it prints is put
# on the page. `docs` writes docs/reference/*.md; a few of the programs are tests.
brasa_sources(reference_sources ${CMAKE_SOURCE_DIR}/tools/reference)
if(NOT reference_sources OR NOT TARGET brasa OR NOT TARGET brasa_transforms OR BRASA_SANITIZE)
  return()
endif()

add_executable(brasa-reference ${reference_sources} ${CMAKE_SOURCE_DIR}/tools/gen/signature.cpp)
brasa_sees_sources(brasa-reference)
target_include_directories(brasa-reference PRIVATE ${CMAKE_SOURCE_DIR}/tools/gen)
target_link_libraries(brasa-reference PRIVATE brasa_transforms)

# The families' titles are read where they are listed; a page's name is made of its title as tools/reference/page.cpp does it.
set(families ${CMAKE_SOURCE_DIR}/src/ops/families.cpp)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${families})
file(STRINGS ${families} lines REGEX "^ *{\".*\", add_")
set(reference_folder ${CMAKE_BINARY_DIR}/reference)
set(reference_pages "")
foreach(line ${lines})
  string(REGEX REPLACE "^ *{\"([^\"]*)\".*" "\\1" title "${line}")
  string(TOLOWER "${title}" slug)
  string(REGEX REPLACE "[^a-z0-9]+" "_" slug "${slug}")
  list(APPEND reference_pages ${slug})
endforeach()

list(TRANSFORM reference_pages REPLACE "(.+)" "${reference_folder}/\\1.cpp" OUTPUT_VARIABLE programs)
add_custom_command(
  OUTPUT ${reference_folder}/stamp
  BYPRODUCTS ${programs}
  COMMAND brasa-reference programs ${reference_folder}
  COMMAND ${CMAKE_COMMAND} -E touch ${reference_folder}/stamp
  DEPENDS brasa-reference
  COMMENT "Writing the examples of the reference"
  VERBATIM)
add_custom_target(reference_programs DEPENDS ${reference_folder}/stamp)

set(reference_tested activations means_and_variances quantiles_and_medians softmax upsampling)
set(printed "")
foreach(page ${reference_pages})
  set(program reference_${page})
  add_executable(${program} EXCLUDE_FROM_ALL ${reference_folder}/${page}.cpp)
  add_dependencies(${program} reference_programs)
  set_target_properties(${program} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${reference_folder})
  target_compile_options(${program} PRIVATE -O0)
  target_link_libraries(${program} PRIVATE brasa)
  add_custom_command(
    OUTPUT ${reference_folder}/${page}.txt
    COMMAND ${program} ${reference_folder}/${page}.txt
    DEPENDS ${program}
    COMMENT "Running the examples of ${page}"
    VERBATIM)
  list(APPEND printed ${reference_folder}/${page}.txt)
  if(page IN_LIST reference_tested)
    set_target_properties(${program} PROPERTIES EXCLUDE_FROM_ALL OFF)
    add_test(NAME docs.reference.${page} COMMAND ${program} ${reference_folder}/${page}.test.txt)
    set_tests_properties(docs.reference.${page} PROPERTIES TIMEOUT 120 ENVIRONMENT "${test_environment}")
  endif()
endforeach()

add_custom_target(docs
  COMMAND brasa-reference pages ${reference_folder} ${CMAKE_SOURCE_DIR}/docs/reference
  DEPENDS ${printed} brasa-reference
  COMMENT "Writing docs/reference"
  VERBATIM)
