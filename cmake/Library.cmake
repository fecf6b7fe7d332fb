# libbrasa.so: every folder's objects in one library that exports only what is marked BRASA_API.
if(NOT BRASA_TARGETS)
  return()
endif()

add_library(brasa SHARED)
foreach(target ${BRASA_TARGETS})
  target_sources(brasa PRIVATE $<TARGET_OBJECTS:${target}>)
endforeach()
set_target_properties(brasa PROPERTIES LINKER_LANGUAGE CXX VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
target_compile_features(brasa INTERFACE cxx_std_20)
target_include_directories(brasa INTERFACE $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include>
                                           $<BUILD_INTERFACE:${BRASA_GENERATED_DIR}/include> $<INSTALL_INTERFACE:include>)
target_link_libraries(brasa PRIVATE $<BUILD_INTERFACE:brasa_external>)
# Its threads sleep in its code when it is closed.
target_link_options(brasa PRIVATE -Wl,--exclude-libs,ALL -Wl,-Bsymbolic-functions -Wl,-z,nodelete)
if(TARGET brasa_generated)
  add_dependencies(brasa brasa_generated)
endif()
if(TARGET brasa_codegen)
  add_dependencies(brasa brasa_codegen)
endif()

# LibTorch's headers over Brasa's.
add_library(brasa_torch INTERFACE)
set_target_properties(brasa_torch PROPERTIES EXPORT_NAME torch)
target_include_directories(brasa_torch INTERFACE $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/compat/torch>
                                                 $<INSTALL_INTERFACE:include/brasa-torch>)
target_link_libraries(brasa_torch INTERFACE brasa)
