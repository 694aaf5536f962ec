// The bytes of files that hold the samples, and the pages of these bytes.
//
// - A stored sample: the file that this process has mapped at the sample's address. This works for
//   every format, and for an inflated copy that stands in for the file.
// - An encoded sample: the whole file that its name gives, since the place in the file is not
//   known.
// - A made sequence: the whole file of its first document.
//
// FilePieces leaves out samples that lie in no file: samples made in memory, and copies.
//
// Thread-safety: one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/dataset/dataset.h"

namespace lockstep::doctor {

// A file, or a part of a file, that this process has mapped.
struct MappedRange {
  uintptr_t begin = 0;
  uintptr_t end = 0;
  uint64_t offset = 0;  // offset of `begin` in the file
  std::string path;
};

// Parses a line of /proc/self/maps; empty if the line names no file.
std::optional<MappedRange> parse_mapped_range(const std::string& line);

class FilePieces {
 public:
  struct Piece {  // bytes of the file, whole pages
    uint64_t begin = 0;
    uint64_t end = 0;
  };
  struct File {
    std::string path;
    std::vector<Piece> pieces;  // sorted, not touching
    std::vector<MappedRange> mapped;
  };

  FilePieces(const data::Dataset& dataset, std::span<const uint64_t> samples);

  const std::vector<File>& files() const { return files_; }
  // The system need not comply; see cold.h.
  void put_out_of_memory() const;
  // 0 to 1. Pages that the system does not report count as in memory. REQUIRES: there are files.
  double share_out_of_memory() const;

 private:
  void add(const std::string& path, uint64_t begin, uint64_t end);
  void add_stored(const std::vector<MappedRange>& mapped, const uint8_t* sample, uint64_t bytes);
  void add_named(std::string name);

  std::vector<File> files_;  // sorted by path
};

}  // namespace lockstep::doctor
