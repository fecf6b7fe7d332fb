# captioner.cpp is a program of its own, which this one builds.
set_source_files_properties(${dir}/captioner.cpp TARGET_DIRECTORY ${target} PROPERTIES HEADER_FILE_ONLY ON)
