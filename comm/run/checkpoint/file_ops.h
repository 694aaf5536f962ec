// The file operations on which a checkpoint's durability depends. Tests replace them, and fail or
// kill the process at each of them in turn.
//
// Errors: kInternal with path and errno text; the message names a full disk.
// Thread-safety: POSIX file operations; an OutputFile belongs to one thread.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "comm/base/status.h"

namespace lockstep {

class OutputFile {
 public:
  virtual ~OutputFile() = default;
  virtual Status append(std::span<const std::byte> bytes) = 0;
  // Completes the file: fsync and close.
  virtual Status finish() = 0;
};

class FileOps {
 public:
  virtual ~FileOps() = default;
  // Fails if the directory exists.
  virtual Status make_directory(const std::string& path) = 0;
  // Fails if the file exists.
  virtual Result<std::unique_ptr<OutputFile>> create(const std::string& path) = 0;
  virtual Status rename(const std::string& from, const std::string& to) = 0;
  virtual Status sync_directory(const std::string& path) = 0;
  // Removes a directory with its files (no subdirectories). Ok if it does not exist.
  virtual Status remove_directory(const std::string& path) = 0;
};

std::unique_ptr<FileOps> posix_file_ops();

}  // namespace lockstep
