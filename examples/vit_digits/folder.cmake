# Cairo draws the plot.
find_package(PkgConfig REQUIRED)
pkg_check_modules(CAIRO REQUIRED IMPORTED_TARGET cairo)
target_link_libraries(${target} PRIVATE PkgConfig::CAIRO)
