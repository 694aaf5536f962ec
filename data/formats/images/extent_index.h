// Where the samples of a data set lie: one extent of a file each. Lockstep makes the index once by
// looking at all samples, and keeps it in the cache directory. Every reader of the samples maps it.
//
// FILE, all little-endian, in this order; numbers of 8 bytes unless said otherwise:
//   header   "LKSIDX02", samples, files, sources, classes, notes, bytes of names; the fingerprint
//            as 32 hex digits
//   extents  32 bytes each (struct Extent)
//   paths    24 bytes each (struct IndexedPath): files, sources, classes, notes
//   names    of the paths, one after another
//   XXH3-128 of all before, as 32 hex digits
//
// INVARIANTS of an index that open() accepted
//  X1 Every extent names a file and lies within the file's size in the index. Its label is a class.
//  X2 The sources, directories or files, are unchanged since the index was made: no file has come,
//     gone or been replaced. A reader notices writes to a file in place (encoded_files.h), and so
//     does open_index(), if the fingerprint covers all content (index_marks.h).
//
// Thread-safety: immutable, except for set_marks(); any thread and process. Files are replaced
// whole.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "comm/base/status.h"
#include "data/base/damaged_files.h"
#include "data/base/source_notes.h"
#include "data/files/mapped_file.h"
#include "data/image/image_info.h"

namespace lockstep::data {

struct Extent {
  uint64_t offset = 0;
  uint32_t bytes = 0;
  uint32_t file = 0;
  uint32_t label = 0;
  uint16_t width = 0;  // of the image, in pixels
  uint16_t height = 0;
  uint8_t channels = 0;
  uint8_t codec = 0;  // ImageCodec
  uint16_t unused = 0;
  uint32_t content = 0;  // content_mark() of what the fingerprint covers, else 0
};
static_assert(sizeof(Extent) == 32);

struct IndexedPath {
  uint64_t bytes = 0;       // 0 for a directory or class; of a note, the number of files
  int64_t modified_ns = 0;  // 0 for a class or note
  uint64_t name_end = 0;    // in the names; each name begins where the one before ends
};
static_assert(sizeof(IndexedPath) == 24);

// The content of an index. Names are relative to the data set's directory.
struct IndexContent {
  struct Path {
    std::string name;
    uint64_t bytes = 0;
    int64_t modified_ns = 0;
  };
  std::vector<Extent> extents;
  std::vector<Path> files;
  std::vector<Path> sources;
  std::vector<std::string> classes;
  SourceNotes notes;
  std::string fingerprint;
};

class ExtentIndex {
 public:
  // kNoInput if there is no index, kBadData if it is damaged or `directory` changed.
  static Result<ExtentIndex> open(const std::string& path, const std::string& directory);

  uint64_t samples() const { return samples_; }
  uint64_t files() const { return files_; }
  uint64_t classes() const { return classes_; }
  const Extent& extent(uint64_t i) const { return extents_[i]; }
  const IndexedPath& file(uint64_t i) const { return paths_[i]; }
  std::string_view file_name(uint64_t i) const { return name(i); }
  std::string_view class_name(uint64_t i) const { return name(files_ + sources_ + i); }
  std::string_view fingerprint() const { return fingerprint_; }
  SourceNotes notes() const;

  // Marks of the files as this process found them (index_marks.h); 0: not known.
  void set_marks(std::vector<uint64_t> marks) { marks_ = std::move(marks); }
  uint64_t mark(uint64_t file) const { return marks_.empty() ? 0 : marks_[file]; }

 private:
  explicit ExtentIndex(MappedFile file) : mapped_(std::move(file)) {}
  Status parse();
  Status check_extents() const;
  Status check_sources(const std::string& directory) const;
  std::string_view name(uint64_t path) const;

  MappedFile mapped_;
  uint64_t samples_ = 0;
  uint64_t files_ = 0;
  uint64_t sources_ = 0;
  uint64_t classes_ = 0;
  uint64_t notes_ = 0;
  std::string_view fingerprint_;
  const Extent* extents_ = nullptr;
  const IndexedPath* paths_ = nullptr;
  std::string_view names_;
  std::vector<uint64_t> marks_;
};

// REQUIRES: content fulfils the invariants. kInternal if the file cannot be written.
Status write_extent_index(const std::string& path, const IndexContent& content);

// Takes the samples of damaged files out of `content`, and tells `damaged` of the files. `found`
// has the files by their numbers in `content`. Returns what was found as the error if no file
// is left.
Status leave_out_damaged(const DamagedFiles& found, DamagedFiles& damaged, IndexContent& content);

// Size and time of a file or directory; kNoInput if it is not there.
Result<IndexContent::Path> stamp_of(const std::string& directory, const std::string& name);

}  // namespace lockstep::data
