// Reads one safetensors file of a checkpoint, and checks it against the manifest on the way.
//
//     open()  size and header ──▶ read() ... all data, in order ──▶ check_hash()
//
// Errors: kBadData if it is missing, damaged or not as in the manifest. kInternal for I/O. Messages
// name the path.
//
// Thread-safety: one thread.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "comm/base/alive.h"
#include "comm/base/byte_units.h"
#include "comm/base/hash.h"
#include "comm/base/status.h"
#include "comm/run/checkpoint/manifest.h"
#include "comm/run/checkpoint/safetensors.h"

namespace lockstep {

// How much is read and hashed at a time.
inline constexpr size_t kCheckpointPieceBytes = 16 * kMib;

Status damaged_checkpoint(const std::string& path, const std::string& what);

// One model file, at most one of the optimizer, nothing else. `path` is the checkpoint's.
Status check_file_names(const std::string& path, const Manifest& manifest);

class CheckpointFile {
 public:
  // `expected` outlives it. Calls `alive` for every piece.
  static Result<std::unique_ptr<CheckpointFile>> open(const std::string& path,
                                                      const ManifestFile& expected,
                                                      const AliveFn& alive = {});
  ~CheckpointFile();
  CheckpointFile(const CheckpointFile&) = delete;
  CheckpointFile& operator=(const CheckpointFile&) = delete;

  const SafetensorsHeader& header() const { return header_; }
  const std::string& path() const { return path_; }

  // Reads the next bytes.
  Status read(std::span<std::byte> out);
  // REQUIRES: everything was read.
  Status check_hash();

  // Reads from `offset` of the data, independent of read(), and without hashing.
  Status read_at(uint64_t offset, std::span<std::byte> out) const;

 private:
  CheckpointFile(int fd, std::string path, const ManifestFile& expected, AliveFn alive)
      : fd_(fd), path_(std::move(path)), expected_(expected), alive_(std::move(alive)) {}
  Status read_header();
  Status read_from(uint64_t offset, std::span<std::byte> out) const;

  const int fd_;
  const std::string path_;
  const ManifestFile& expected_;
  const AliveFn alive_;
  uint64_t at_ = 0;  // in the file
  Sha256 hash_;      // of the bytes before it
  SafetensorsHeader header_;
};

}  // namespace lockstep
