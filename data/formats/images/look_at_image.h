// Thread-safety: as said.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "comm/base/status.h"
#include "data/base/progress.h"
#include "data/formats/images/extent_index.h"
#include "data/source/far_files/remote_files.h"

namespace lockstep::data {

// A mask: read_mask_info().
enum class PictureKind : uint8_t { kImage, kMask };

// Looks at an image that is a single file. `file` has the image's name. Sets the size and time of
// `file`, and all of `extent` but label and file. `far` has the content; null means the image is
// local. Errors as open_dataset(). Any thread.
Status look_at_image(const std::string& directory, IndexContent::Path& file, Extent& extent,
                     source::RemoteFiles* far, PictureKind kind = PictureKind::kImage);

// Describes an image of `extent.bytes` by its first `bytes`, into `extent`. kBadData: the message
// goes on after the image's name; more bytes of the image may help. Any thread.
Status describe_image(std::span<const uint8_t> bytes, Extent& extent,
                      PictureKind kind = PictureKind::kImage);

// Reports progress of a count that several threads advance. Only thread 0, the caller's, reports.
class ProgressOfMany {
 public:
  ProgressOfMany(std::string what, uint64_t total, const ProgressFn& progress)
      : what_(std::move(what)), total_(total), progress_(progress) {}
  void one_done(uint32_t thread) {
    const uint64_t done = done_.fetch_add(1) + 1;
    if (thread == 0 && progress_) progress_(what_, done, total_);
  }

 private:
  std::string what_;
  uint64_t total_;
  const ProgressFn& progress_;
  std::atomic<uint64_t> done_{0};
};

}  // namespace lockstep::data
