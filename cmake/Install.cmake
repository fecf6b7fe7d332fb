# What a user's project needs: headers, the libraries with the kernel pack beside them, the command, find_package(Brasa) with
# Brasa::brasa and Brasa::torch, `pkg-config brasa` and `pkg-config brasa-torch`.
if(NOT TARGET brasa)
  return()
endif()
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS brasa brasa_torch EXPORT BrasaTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/brasa DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h"
                                                                                           PATTERN "*.inc")
install(DIRECTORY ${CMAKE_SOURCE_DIR}/compat/torch/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/brasa-torch
        FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
if(TARGET brasa_generated)
  install(DIRECTORY ${BRASA_GENERATED_DIR}/include/brasa DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
endif()
if(TARGET brasa_codegen)
  install(TARGETS brasa_codegen LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
if(BRASA_PACK)
  install(FILES ${BRASA_PACK} DESTINATION ${CMAKE_INSTALL_LIBDIR}/brasa)
endif()
if(TARGET brasa-cli)
  install(TARGETS brasa-cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/tools/peers DESTINATION ${CMAKE_INSTALL_DATADIR}/brasa FILES_MATCHING PATTERN "*.py")
endif()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Brasa)
install(EXPORT BrasaTargets NAMESPACE Brasa:: DESTINATION ${package_dir})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/BrasaConfig.cmake.in ${CMAKE_BINARY_DIR}/BrasaConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/BrasaConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/BrasaConfig.cmake ${CMAKE_BINARY_DIR}/BrasaConfigVersion.cmake DESTINATION ${package_dir})

# The prefix is known only when the files are installed, so brasa.pc finds it from its own place.
file(RELATIVE_PATH prefix_from_pc /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" prefix_from_pc "${prefix_from_pc}")
foreach(name brasa brasa-torch)
  configure_file(${CMAKE_CURRENT_LIST_DIR}/${name}.pc.in ${CMAKE_BINARY_DIR}/${name}.pc @ONLY)
endforeach()
install(FILES ${CMAKE_BINARY_DIR}/brasa.pc ${CMAKE_BINARY_DIR}/brasa-torch.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
