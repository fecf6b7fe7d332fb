#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace brasa::exporting {

/// Replaces the file when all of it is written.
void write_file(const std::string& path, std::string_view bytes);

/// A file that is removed with this.
struct TemporaryFile {
  TemporaryFile(std::string p, std::string_view bytes) : path(std::move(p)) { write_file(path, bytes); }
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  std::string path;
};

/// Runs a program of the system's, by name, and waits. Nothing if it is not there; else whether it did its work.
std::optional<bool> run_tool(const std::vector<std::string>& words);

/// The GPU's machine code of a PTX module for "sm_80"; empty where `ptxas` is not there (BRASA_PTXAS may name another).
std::string machine_code(const std::string& ptx, const std::string& architecture);

}  // namespace brasa::exporting
