#include "coordinator/journal/file_place.h"

#include <sys/stat.h>

#include <cerrno>

#include "comm/base/file.h"

namespace lockstep::coordinator {

Status FilePlace::look() {
  struct stat found {};
  if (::stat(path_.c_str(), &found) != 0) {
    if (!is_known_ && errno == ENOENT) return Status::ok();
    if (errno == ENOENT) return {Code::kInternal, path_ + " was deleted or moved under the run"};
    return {Code::kInternal, "cannot look at " + path_ + ": " + errno_text(errno)};
  }
  if (is_known_ && (found.st_dev != device_ || found.st_ino != inode_))
    return {Code::kInternal, path_ + " was replaced under the run"};
  if (is_known_ && found.st_size < bytes_)
    return {Code::kInternal, path_ + " was cut under the run, from " + std::to_string(bytes_) +
                                 " bytes to " + std::to_string(found.st_size)};
  is_known_ = true;
  device_ = found.st_dev;
  inode_ = found.st_ino;
  bytes_ = found.st_size;
  return Status::ok();
}

}  // namespace lockstep::coordinator
