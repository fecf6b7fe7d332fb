#pragma once

#include <string>
#include <vector>

namespace brasa {

/// Where the thread is, from inside outwards, as return addresses: a few microseconds.
std::vector<void*> call_stack();
/// The innermost of these calls that is the user's: "train.cpp:31 in step(...)" where debug information and binutils' addr2line are
/// there, its function's name where symbols are, else nothing. Slow.
std::string users_line(const std::vector<void*>& stack);
/// For messages: ", at train.cpp:31 in step(...)" of the call that runs; empty where no line is known.
std::string at_users_line();

}  // namespace brasa
