# One program test_<folder> for each folder of tests/ with sources. It links the static libraries that src/<folder> may use, so that
# it sees internals; a test folder that is no folder of src/ links them all. ctest shows one line a suite.
find_package(GTest)
if(NOT GTest_FOUND)
  message(STATUS "GoogleTest is missing: no tests (scripts/setup installs it)")
  return()
endif()

# Neither what the user's cache holds nor what an earlier run left may decide a test; ctest empties this one as it starts.
set(test_cache ${CMAKE_BINARY_DIR}/tests/cache)
set(test_environment BRASA_CACHE_DIR=${test_cache})
file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/tests/cache.cmake CONTENT "file(REMOVE_RECURSE \"${test_cache}\")\n")
set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${CMAKE_BINARY_DIR}/tests/cache.cmake)
if(TARGET brasa_codegen)
  list(APPEND test_environment BRASA_CODEGEN=$<TARGET_FILE:brasa_codegen>)
endif()
if(BRASA_SANITIZE)
  # LLVM's own objects are not instrumented, so that containers passed to it look overflown. clang 14's leak checker follows
  # thread-local variables of libraries that are loaded later by a header that glibc no longer writes, and crashes.
  list(APPEND test_environment ASAN_OPTIONS=detect_container_overflow=0:intercept_tls_get_addr=0:malloc_context_size=6
                               UBSAN_OPTIONS=print_stacktrace=1 TSAN_OPTIONS=halt_on_error=1:die_after_fork=0)
endif()

# Every test program and what it loads; `make sanitize-thread` builds only what starts threads in these folders.
add_custom_target(tests)
if(TARGET brasa_codegen)
  add_dependencies(tests brasa_codegen)
endif()
# `make test-emu` runs these with tensors on the emulated GPU: what makes its tensors where the default device is.
set(emu_folders amp capture compat func io nn optim tensor)
set(threaded_folders runtime loader program tensor capture profiler)

brasa_precompiled(brasa_test_headers <gtest/gtest.h>)
# Like the programs that take it.
set_target_properties(brasa_test_headers PROPERTIES POSITION_INDEPENDENT_CODE OFF)
target_compile_options(brasa_test_headers PRIVATE -fPIE ${BRASA_TEST_FLAGS})
target_link_libraries(brasa_test_headers PRIVATE GTest::gtest)

file(GLOB test_dirs CONFIGURE_DEPENDS LIST_DIRECTORIES true ${CMAKE_SOURCE_DIR}/tests/*)
foreach(dir ${test_dirs})
  get_filename_component(folder ${dir} NAME)
  brasa_sources(sources ${dir})
  if(NOT sources OR folder MATCHES "^(install|fakes|pytorch)$" OR (BRASA_SANITIZE STREQUAL "thread" AND NOT folder IN_LIST threaded_folders))
    continue()
  endif()

  if(BRASA_SANITIZE STREQUAL "thread")
    foreach(source ${sources})
      file(STRINGS ${source} tests REGEX "^(TEST|INSTANTIATE_TEST)" LIMIT_COUNT 1)
      file(STRINGS ${source} starts_threads REGEX "std::(jthread|thread|async)|workers\\(" LIMIT_COUNT 1)
      if(tests AND NOT starts_threads)
        list(REMOVE_ITEM sources ${source})
      endif()
    endforeach()
  endif()

  set(target test_${folder})
  add_executable(${target} ${sources})
  add_dependencies(tests ${target})
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  brasa_sees_sources(${target})
  target_precompile_headers(${target} REUSE_FROM brasa_test_headers)
  target_compile_options(${target} PRIVATE ${BRASA_TEST_FLAGS})
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  # In no other source, so that the objects of a second clone are those of the first one to a compiler cache.
  foreach(source ${sources})
    file(STRINGS ${source} reads_data REGEX BRASA_TEST_DATA LIMIT_COUNT 1)
    if(reads_data)
      set_property(SOURCE ${source} APPEND PROPERTY COMPILE_DEFINITIONS BRASA_TEST_DATA="${CMAKE_SOURCE_DIR}/tests/data")
    endif()
  endforeach()
  if(TARGET brasa_${folder})
    target_link_libraries(${target} PRIVATE brasa_${folder})
  else()
    target_link_libraries(${target} PRIVATE ${BRASA_TARGETS})
  endif()
  target_link_libraries(${target} PRIVATE GTest::gtest GTest::gtest_main)
  if(TARGET brasa_generated)
    if(NOT TARGET brasa_${folder} OR brasa_${folder} IN_LIST BRASA_ABOVE_GENERATED)
      add_dependencies(${target} brasa_generated)
    endif()
  endif()
  if(EXISTS ${dir}/folder.cmake)
    include(${dir}/folder.cmake)
  endif()

  set(on_emu FALSE)
  if(folder IN_LIST emu_folders)
    set(on_emu TRUE)
  endif()
  file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/tests/${target}.cmake CONTENT
"set(program \"$<TARGET_FILE:${target}>\")
set(name ${target})
set(environment \"${test_environment}\")
set(on_emu ${on_emu})
set(not_on_emu \"${CMAKE_SOURCE_DIR}/tests/not_on_emu.txt\")
include(\"${CMAKE_CURRENT_LIST_DIR}/DiscoverSuites.cmake\")
")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${CMAKE_BINARY_DIR}/tests/${target}.cmake)
endforeach()

# No child that forks waits for a static that another thread makes.
if(TARGET brasa AND NOT BRASA_SANITIZE)
  add_test(NAME statics COMMAND ${CMAKE_SOURCE_DIR}/scripts/check_statics $<TARGET_FILE:brasa>)
endif()

# The sanitizers' runtime would have to be linked into the user's program as well.
if(TARGET brasa AND EXISTS ${CMAKE_SOURCE_DIR}/examples/hello/CMakeLists.txt AND NOT BRASA_SANITIZE)
  include(GNUInstallDirs)
  add_test(NAME install.user_project
           COMMAND ${CMAKE_COMMAND} -DBUILD=${CMAKE_BINARY_DIR} -DSOURCE=${CMAKE_SOURCE_DIR}/examples/hello
                   -DCXX=${CMAKE_CXX_COMPILER} -DWORK=${CMAKE_BINARY_DIR}/tests/install -DLIBDIR=${CMAKE_INSTALL_LIBDIR}
                   -P ${CMAKE_SOURCE_DIR}/tests/install/install.cmake)
  add_test(NAME install.readme_program
           COMMAND ${CMAKE_COMMAND} -DROOT=${CMAKE_SOURCE_DIR} -P ${CMAKE_SOURCE_DIR}/tests/install/readme.cmake)
  set_tests_properties(install.user_project PROPERTIES ENVIRONMENT BRASA_CACHE_DIR=${test_cache})
endif()

# A user's C project with an exported model.
if(TARGET brasa-cli AND NOT BRASA_SANITIZE)
  add_test(NAME install.standalone
           COMMAND ${CMAKE_COMMAND} -DBRASA=$<TARGET_FILE:brasa-cli> -DMODEL=${CMAKE_SOURCE_DIR}/tests/data/models/dynamic_batch.pt2
                   -DSOURCE=${CMAKE_SOURCE_DIR}/examples/standalone -DCC=${CMAKE_C_COMPILER} -DWORK=${CMAKE_BINARY_DIR}/tests/standalone
                   -P ${CMAKE_SOURCE_DIR}/tests/install/standalone.cmake)
  set_tests_properties(install.standalone PROPERTIES ENVIRONMENT "${test_environment}")
endif()

# A C program trains what was exported, and this process beside it.
if(TARGET example-finetune)
  add_test(NAME example.finetune COMMAND example-finetune ${CMAKE_BINARY_DIR}/tests/finetune --check)
  set_tests_properties(example.finetune PROPERTIES TIMEOUT 600 ENVIRONMENT "${test_environment}")
endif()

# A small captioner's tokens, eager, compiled and alone, against those of PyTorch.
if(TARGET example-captioning)
  add_test(NAME example.captioning COMMAND example-captioning --check --repeats 2 --work ${CMAKE_BINARY_DIR}/tests/captioning)
  set_tests_properties(example.captioning PROPERTIES TIMEOUT 600 ENVIRONMENT "${test_environment}")
endif()

# Operators and their gradients, and training step for step, against references, as `brasa verify` runs them.
if(TARGET brasa-cli)
  set(verified_devices cpu emu)
  if(BRASA_SANITIZE)
    set(verified_devices cpu)  # ten times as slow
  endif()
  foreach(backend eager inductor interpreter)
    foreach(device ${verified_devices})
      foreach(what ops training)
        if(BRASA_SANITIZE AND "${what}.${backend}" STREQUAL "training.interpreter")
          continue()  # minutes, of the interpreter's loops over elements, which verify_ops runs too
        endif()
        set(name verify_${what}.${backend}.${device})
        add_test(NAME ${name} COMMAND brasa-cli verify ${what} ${CMAKE_SOURCE_DIR}/tests/data/${what} --backend ${backend}
                                      --device ${device})
        set_tests_properties(${name} PROPERTIES TIMEOUT 600 ENVIRONMENT "${test_environment}")
      endforeach()
    endforeach()
  endforeach()
  foreach(backend eager inductor interpreter)
    add_test(NAME verify_models.${backend} COMMAND brasa-cli verify models ${CMAKE_SOURCE_DIR}/tests/data/models --backend ${backend})
    set_tests_properties(verify_models.${backend} PROPERTIES TIMEOUT 600 ENVIRONMENT "${test_environment}")
  endforeach()
  add_test(NAME verify_checkpoints COMMAND brasa-cli verify checkpoints ${CMAKE_SOURCE_DIR}/tests/data/checkpoints)
  set_tests_properties(verify_checkpoints PROPERTIES ENVIRONMENT "${test_environment}")
  add_test(NAME bench.threads COMMAND brasa-cli bench mlp_infer_b8 --threads 2 --seconds 0.05)
  add_test(NAME bench.construct COMMAND brasa-cli bench construct_resnet50 --modes eager --seconds 0)
  add_test(NAME bench.operators COMMAND brasa-cli bench gelu max_pool2d_with_indices --operators --gradients --seed 7
                                        --vectors ${CMAKE_SOURCE_DIR}/tests/data/ops --milliseconds 0.01)
  set_tests_properties(bench.operators PROPERTIES ENVIRONMENT "${test_environment}"
                       PASS_REGULAR_EXPRESSION "\"ms\":[^\n]*\"seed\":7[^\n]*\n[^\n]*\"ms\":[^\n]*\"seed\":7" FAIL_REGULAR_EXPRESSION "\"error\"")
  add_test(NAME bench.peers COMMAND ${CMAKE_COMMAND} -DBRASA=$<TARGET_FILE:brasa-cli> -DWORK=${CMAKE_BINARY_DIR}/tests/peers
                                    -P ${CMAKE_SOURCE_DIR}/tests/peers/peers.cmake)
  set_tests_properties(bench.peers PROPERTIES TIMEOUT 300 ENVIRONMENT "${test_environment}")
  # An exported program: each of its inputs is drawn.
  set(archive ${CMAKE_SOURCE_DIR}/tests/data/models/dynamic_batch.pt2)
  add_test(NAME bench.archive COMMAND brasa-cli bench ${archive} --seconds 0 --seed 7)
  set_tests_properties(bench.archive PROPERTIES PASS_REGULAR_EXPRESSION "pt2 eager: .* seed 7\n.*pt2 default: .* seed 7")
  add_test(NAME bench.archive_json COMMAND brasa-cli bench ${archive} --seconds 0 --modes eager --json)
  set_tests_properties(bench.archive_json PROPERTIES PASS_REGULAR_EXPRESSION "\"mode\":\"eager\".*\"seed\":0}")
  add_test(NAME explain.archive COMMAND brasa-cli explain ${archive})
  set_tests_properties(explain.archive PROPERTIES PASS_REGULAR_EXPRESSION "seed 0.*aten::linear.*0 graph breaks.*memory traffic")
  add_test(NAME explain.archive_json COMMAND brasa-cli explain ${archive} --json)
  set_tests_properties(explain.archive_json PROPERTIES PASS_REGULAR_EXPRESSION "\"breaks\":\\[\\]")
  add_test(NAME info.npz COMMAND brasa-cli info ${CMAKE_SOURCE_DIR}/tests/data/npy/good/dtypes.npz)
  set_tests_properties(info.npz PROPERTIES PASS_REGULAR_EXPRESSION "complex64  complex64\\[2, 3\\]")
  add_test(NAME doctor.text COMMAND brasa-cli doctor)
  set_tests_properties(doctor.text PROPERTIES PASS_REGULAR_EXPRESSION
                       "found +code +x86-64.*driver.*cuBLASLt.*found +code generator.*found +disk cache.*LAPACK")
  add_test(NAME doctor.json COMMAND brasa-cli doctor --json)
  set_tests_properties(doctor.json PROPERTIES PASS_REGULAR_EXPRESSION
                       "^\\[{\"advice\":.*\"area\":\"cuda\".*\"name\":\"cuDNN\",\"state\":\"(found|missing|unusable)\".*\\]")
  set_tests_properties(doctor.text doctor.json PROPERTIES ENVIRONMENT "${test_environment}")
  foreach(test bench.archive bench.archive_json explain.archive explain.archive_json)
    set_tests_properties(${test} PROPERTIES ENVIRONMENT "${test_environment}")
  endforeach()
  if(TARGET brasa-cold)
    add_test(NAME bench.cold_operators COMMAND brasa-cold --operators 3 --seed 1)
  endif()
endif()

# Archives that the PyTorch of this machine writes, where there is one.
set(BRASA_TORCH_PYTHON "" CACHE FILEPATH "A Python with torch and safetensors, for tests against PyTorch")
if(TARGET brasa-cli AND BRASA_TORCH_PYTHON)
  add_test(NAME bench.torch_peer COMMAND brasa-cli bench mlp_infer_b8 --peers --python ${BRASA_TORCH_PYTHON} --only "torch eager"
                                        --rounds 1 --seconds 0 --json)
  set_tests_properties(bench.torch_peer PROPERTIES TIMEOUT 600 ENVIRONMENT "${test_environment}"
                       PASS_REGULAR_EXPRESSION "\"times\":{\"brasa eager\":{\"median_ms\":[0-9.]+.*\"torch eager\":{\"median_ms\":[0-9.]+")
  add_test(NAME pytorch.archives COMMAND ${BRASA_TORCH_PYTHON} ${CMAKE_SOURCE_DIR}/tests/pytorch/archives.py
                                         ${CMAKE_BINARY_DIR}/tests/archives)
  set_tests_properties(pytorch.archives PROPERTIES TIMEOUT 600 FIXTURES_SETUP pytorch_archives)
  add_test(NAME pytorch.round_trip COMMAND ${BRASA_TORCH_PYTHON} ${CMAKE_SOURCE_DIR}/tests/pytorch/round_trip.py
                                           $<TARGET_FILE:brasa-cli> ${CMAKE_BINARY_DIR}/tests/archives)
  set_tests_properties(pytorch.round_trip PROPERTIES TIMEOUT 900 FIXTURES_REQUIRED pytorch_archives ENVIRONMENT "${test_environment}")
  add_test(NAME pytorch.checkpoints COMMAND ${BRASA_TORCH_PYTHON} ${CMAKE_SOURCE_DIR}/tests/pytorch/checkpoints.py
                                            ${CMAKE_BINARY_DIR}/tests/checkpoints)
  set_tests_properties(pytorch.checkpoints PROPERTIES TIMEOUT 600 FIXTURES_SETUP pytorch_checkpoints)
  add_test(NAME pytorch.verify_checkpoints COMMAND brasa-cli verify checkpoints ${CMAKE_BINARY_DIR}/tests/checkpoints)
  set_tests_properties(pytorch.verify_checkpoints PROPERTIES FIXTURES_REQUIRED pytorch_checkpoints ENVIRONMENT "${test_environment}")
  foreach(backend eager inductor interpreter)
    add_test(NAME pytorch.verify_${backend} COMMAND brasa-cli verify models ${CMAKE_BINARY_DIR}/tests/archives --backend ${backend})
    set_tests_properties(pytorch.verify_${backend} PROPERTIES TIMEOUT 600 FIXTURES_REQUIRED pytorch_archives ENVIRONMENT "${test_environment}")
  endforeach()
endif()
