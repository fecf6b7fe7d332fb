# Libraries from the distribution's packages; scripts/packages.txt lists the packages.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(ZLIB REQUIRED)
find_path(XXHASH_INCLUDE_DIR xxhash.h REQUIRED)
find_library(XXHASH_LIBRARY xxhash REQUIRED)
find_path(UTF8PROC_INCLUDE_DIR utf8proc.h REQUIRED)
find_library(UTF8PROC_LIBRARY utf8proc REQUIRED)

add_library(brasa_external INTERFACE)
target_link_libraries(brasa_external INTERFACE fmt::fmt nlohmann_json::nlohmann_json ZLIB::ZLIB ${XXHASH_LIBRARY} ${UTF8PROC_LIBRARY}
                                               Threads::Threads ${CMAKE_DL_LIBS})
target_include_directories(brasa_external SYSTEM INTERFACE ${XXHASH_INCLUDE_DIR} ${UTF8PROC_INCLUDE_DIR})
