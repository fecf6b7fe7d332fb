# Their headers only: the libraries are loaded by the first image (src/io/jpeg.cpp, png.cpp).
find_package(JPEG REQUIRED)
find_package(PNG REQUIRED)
target_include_directories(brasa_io SYSTEM PRIVATE ${JPEG_INCLUDE_DIRS} ${PNG_INCLUDE_DIRS})
