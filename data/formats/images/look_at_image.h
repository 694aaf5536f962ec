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
#include "data/source/view/remote_files.h"

namespace lockstep::data {

// An image that is a file of its own: fills in size and time of `file`, which has its name, and all
// of `extent` but its label and file. `far`: what has its content; null: it is here. Errors as
// open_dataset(). Any thread.
Status look_at_image(const std::string& directory, IndexContent::Path& file, Extent& extent,
                     source::RemoteFiles* far);

// What `bytes`, which begin an image of `extent.bytes`, say of it, into `extent`. kBadData going on
// after its name; more of its bytes may help. Any thread.
Status describe_image(std::span<const uint8_t> bytes, Extent& extent);

// Tells of a count that several threads advance; the caller's thread says it, which is thread 0.
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
