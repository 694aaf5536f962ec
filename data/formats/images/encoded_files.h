// The bytes of encoded samples, read from the files that an index names.
//
// Every read compares the file's size and time with the index: what is written to, cut off or gone
// is told, whatever its bytes would have been. Files are opened as they are needed; few large ones
// stay open, many small ones do not.
//
// Thread-safety: read() from any thread; the index outlives it.
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
#include "data/source/view/remote_files.h"

namespace lockstep::data {

// Exactly extent.bytes of the file at `path`, which was `then` when it was looked at and may be far
// away (`far`, null: it is not). kBadData naming it when it is not any more. Any thread.
Status read_wherever(source::RemoteFiles* far, const std::string& path, const Extent& extent,
                     const IndexedPath& then, std::vector<uint8_t>& out);

class EncodedFiles {
 public:
  // `far`: what has the content of files that are only places; null: they all are here. `copied`:
  // what files are copies of, by their number.
  EncodedFiles(const ExtentIndex& index, std::string directory,
               std::shared_ptr<source::RemoteFiles> far = nullptr,
               std::map<size_t, std::string> copied = {});
  ~EncodedFiles();
  EncodedFiles(const EncodedFiles&) = delete;
  EncodedFiles& operator=(const EncodedFiles&) = delete;

  // Exactly extent.bytes into `out`. kBadData naming the file that is not what it was.
  Status read(const Extent& extent, std::vector<uint8_t>& out) const;

  // The same place as a file's, of which those that stay open are. REQUIRES: none is far away.
  FileExtent at(const Extent& extent) const;

  // It will be read soon. Of files that are here this does nothing.
  void announce(const Extent& extent) const;
  source::RemoteFiles* far() const { return far_.get(); }

  // "FILE", or "FILE at byte N" where it holds several samples; for messages.
  std::string name_of(const Extent& extent) const;

 private:
  std::string path_of(const Extent& extent) const;

  const ExtentIndex& index_;
  std::string directory_;
  std::shared_ptr<source::RemoteFiles> far_;
  std::map<size_t, std::string> copied_;
  mutable std::vector<std::atomic<int>> open_;  // by file, -1: not yet; empty: none stays open
};

}  // namespace lockstep::data
