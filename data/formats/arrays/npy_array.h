// A NumPy array in a mapped file: a file of its own, or a member of an archive.
//
// Thread-safety: a value; free functions.
#pragma once

#include <cstdint>
#include <string>

#include "comm/base/status.h"
#include "data/files/mapped_file.h"
#include "data/formats/arrays/npy_header.h"

namespace lockstep::data {

// An array and its file.
struct NpyArray {
  std::string path;  // of the file
  std::string name;  // for messages
  MappedFile file;
  NpyHeader header;
  uint64_t offset = 0;  // of the array's header in the mapped file
  bool is_inflated = false;

  const uint8_t* content() const { return file.bytes().data() + offset + header.header_bytes; }
};

// Reads the header of the array in [offset, offset + `bytes`) of where.file, and checks that the
// array fills these bytes. kBadData, naming the array.
Result<NpyArray> open_npy_array(NpyArray where, uint64_t bytes);

// Maps a file and opens its array.
Result<NpyArray> open_npy_file(const std::string& path);

}  // namespace lockstep::data
