// The file operations that a checkpoint's durability hangs on, behind a seam: a test fails or kills
// the process at each of them in turn.
//
// Errors: kInternal with path and errno text; a full disk says so.
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
  // fsync and close; the file is complete.
  virtual Status finish() = 0;
};

class FileOps {
 public:
  virtual ~FileOps() = default;
  // Fails when the directory exists.
  virtual Status make_directory(const std::string& path) = 0;
  // Fails when the file exists.
  virtual Result<std::unique_ptr<OutputFile>> create(const std::string& path) = 0;
  virtual Status rename(const std::string& from, const std::string& to) = 0;
  virtual Status sync_directory(const std::string& path) = 0;
  // A directory with files in it (no subdirectories). Ok when it is not there.
  virtual Status remove_directory(const std::string& path) = 0;
};

std::unique_ptr<FileOps> posix_file_ops();

}  // namespace lockstep
