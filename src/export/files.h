#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace brasa::exporting {

/// Replaces the file when all of it is written. `mode` of a new one, as for open(2).
void write_file(const std::string& path, std::string_view bytes, mode_t mode = 0666);
std::string read_file(const std::string& path);

/// Of one call alone: other threads and programs make code at the same time. It goes with this.
struct TemporaryFolder {
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  std::string path;
};

/// Runs a program of the system's, by name, and waits. Nothing if it is not there; else whether it did its work.
std::optional<bool> run_tool(const std::vector<std::string>& words);

/// The GPU's machine code of a PTX module for "sm_80"; empty where `ptxas` is not there (BRASA_PTXAS may name another).
std::string machine_code(const std::string& ptx, const std::string& architecture);

}  // namespace brasa::exporting
