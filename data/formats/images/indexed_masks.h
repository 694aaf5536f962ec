// The masks of one field, with an index of their own: mask i belongs to image i.
//
// Thread-safety: immutable; all calls from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "comm/base/status.h"
#include "data/base/progress.h"
#include "data/formats/images/encoded_files.h"
#include "data/formats/images/encoded_source.h"
#include "data/formats/images/extent_index.h"

namespace lockstep::data {

class IndexedMasks {
 public:
  // Opens source.masks[which]. `images`: the index of the source. kBadData, naming the files, if an
  // image has no mask, a mask has no image, or the two differ in size.
  static Result<std::shared_ptr<const IndexedMasks>> open(const EncodedSource& source, size_t which,
                                                          const ExtentIndex& images,
                                                          const std::string& cache_dir,
                                                          const ProgressFn& progress);

  // As EncodedFiles.
  Status read(uint64_t i, std::vector<uint8_t>& out) const { return files_.read(i, out); }
  std::string name_of(uint64_t i) const { return files_.name_of(index_.extent(i)); }
  uint64_t announce(uint64_t i) const {
    if (files_.far() == nullptr) return 0;
    files_.announce(index_.extent(i));
    return index_.extent(i).bytes;
  }
  const Extent& extent(uint64_t i) const { return index_.extent(i); }
  std::string_view fingerprint() const { return index_.fingerprint(); }
  SourceNotes notes() const { return index_.notes(); }

 private:
  IndexedMasks(const EncodedSource& source, ExtentIndex index)
      : index_(std::move(index)), files_(index_, source.directory, source.far, source.copied) {}

  Status check_join(const EncodedSource& source, const ExtentIndex& images) const;

  const ExtentIndex index_;
  const EncodedFiles files_;
};

}  // namespace lockstep::data
