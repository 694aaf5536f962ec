// Which bytes of which files samples are, and their pages.
//
// Of a stored sample it is what the process has mapped at its address: whatever the format, and
// also where an inflated copy is read instead of the file. Of an encoded one it is the whole file
// that is named for it, since where in it the sample lies is not told; so it is of a sequence that
// is made, of which the file of its first document is taken. Samples that lie in no file are left
// out: those made in memory, and copies.
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

// A file, or a part of one, that this process has mapped.
struct MappedRange {
  uintptr_t begin = 0;
  uintptr_t end = 0;
  uint64_t offset = 0;  // in the file, of `begin`
  std::string path;
};

// A line of /proc/self/maps; nothing where that is no file.
std::optional<MappedRange> parse_mapped_range(const std::string& line);

class FilePieces {
 public:
  struct Piece {  // bytes of the file, whole pages
    uint64_t begin = 0;
    uint64_t end = 0;
  };
  struct File {
    std::string path;
    std::vector<Piece> pieces;  // sorted, apart
    std::vector<MappedRange> mapped;
  };

  FilePieces(const data::Dataset& dataset, std::span<const uint64_t> samples);

  const std::vector<File>& files() const { return files_; }
  // A wish; see cold.h.
  void put_out_of_memory() const;
  // 0 to 1; what the system does not tell counts as in memory. REQUIRES: there are files.
  double share_out_of_memory() const;

 private:
  void add(const std::string& path, uint64_t begin, uint64_t end);
  void add_stored(const std::vector<MappedRange>& mapped, const uint8_t* sample, uint64_t bytes);
  void add_named(std::string name);

  std::vector<File> files_;  // sorted by path
};

}  // namespace lockstep::doctor
