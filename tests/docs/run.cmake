# Runs PROGRAM; its output must be the text of the file EXPECTED, unless that is empty.
execute_process(COMMAND ${PROGRAM} OUTPUT_VARIABLE output ERROR_VARIABLE error RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${PROGRAM} ended with ${status}\n${output}${error}")
endif()
file(READ ${EXPECTED} expected)
if(expected AND NOT output STREQUAL expected)
  message(FATAL_ERROR "The page shows\n${expected}\nThe program printed\n${output}")
endif()
