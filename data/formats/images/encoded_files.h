// Reads the bytes of encoded samples from the files that an index names.
//
// Every read compares the file's size and time with the index. So a read reports a file that was
// written to, truncated or removed, whatever its bytes. Where the file was touched
// (data/base/change_mark.h), the read also compares the bytes with the bytes that this process read
// first. Files are opened as needed. Few large files stay open; many small files do not.
//
// Thread-safety: read() from any thread; the index outlives the object.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "data/formats/images/extent_index.h"
#include "data/io/file_extent.h"
#include "data/source/far_files/remote_files.h"

namespace lockstep::data {

// Reads exactly extent.bytes of the file at `path`. `then` is the file as the index has it. `far`
// reads a remote file; null means the file is local. kBadData, naming the file, if it changed. Any
// thread.
Status read_wherever(source::RemoteFiles* far, const std::string& path, const Extent& extent,
                     const IndexedPath& then, std::vector<uint8_t>& out);

class EncodedFiles {
 public:
  // `far` has the content of files that are only places; null means all files are local. `copied`:
  // by the number of a copy, the file that it is a copy of.
  EncodedFiles(const ExtentIndex& index, std::string directory,
               std::shared_ptr<source::RemoteFiles> far = nullptr,
               std::map<size_t, std::string> copied = {});
  ~EncodedFiles();
  EncodedFiles(const EncodedFiles&) = delete;
  EncodedFiles& operator=(const EncodedFiles&) = delete;

  // Reads exactly the bytes of sample i into `out`. kBadData, naming the file, if it changed.
  Status read(uint64_t i, std::vector<uint8_t>& out) const;

  // Sample i as a place in a file; uses the open descriptor of files that stay open. REQUIRES: no
  // file is remote.
  FileExtent at(uint64_t i) const;

  // Announces a read soon. Does nothing for local files.
  void announce(const Extent& extent) const;
  source::RemoteFiles* far() const { return far_.get(); }

  // "FILE", or "FILE at byte N" if the file holds several samples; for messages.
  std::string name_of(const Extent& extent) const;

 private:
  std::string path_of(const Extent& extent) const;

  const ExtentIndex& index_;
  std::string directory_;
  std::shared_ptr<source::RemoteFiles> far_;
  std::map<size_t, std::string> copied_;
  mutable std::vector<std::atomic<uint64_t>> marks_;     // FileExtent::mark, by file
  mutable std::vector<std::atomic<uint32_t>> contents_;  // FileExtent::content, by sample
  mutable std::vector<std::atomic<int>> open_;  // by file, -1: not yet; empty: no file stays open
};

}  // namespace lockstep::data
