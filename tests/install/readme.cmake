# The README's first program is examples/hello/main.cpp, which install.cmake builds and runs. Takes -DROOT=
file(READ ${ROOT}/README.md readme)
file(READ ${ROOT}/examples/hello/main.cpp program)
string(FIND "${readme}" "```cpp\n${program}```" found)
if(found EQUAL -1)
  message(FATAL_ERROR "README.md does not show examples/hello/main.cpp as it is")
endif()
