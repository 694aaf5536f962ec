#include "comm/tls/private_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "comm/base/file.h"
#include "comm/base/limits.h"

namespace lockstep::rpc {
namespace {

// Checks owner and mode on the open file, so that it cannot be exchanged in between.
Status check_private(int fd, const std::string& path, const std::string& what) {
  struct stat info;
  if (::fstat(fd, &info) != 0)
    return Status(Code::kInternal, "cannot stat " + path + ": " + errno_text(errno));
  if (!S_ISREG(info.st_mode)) return Status(Code::kConfig, path + " is not a regular file");
  if (info.st_uid != ::geteuid())
    return Status(Code::kConfig, "the " + what + " " + path + " belongs to another user (uid " +
                                     std::to_string(info.st_uid) + "): run as that user");
  if ((info.st_mode & 0177) != 0)
    return Status(Code::kConfig, "the " + what + " " + path +
                                     " can be read by others or is executable: chmod 600 it, and "
                                     "make a new one if someone may have read it");
  return Status::ok();
}

Status read_up_to(int fd, const std::string& path, size_t limit_bytes, std::string* content) {
  content->resize(limit_bytes + 1);
  size_t bytes = 0;
  while (bytes < content->size()) {
    const ssize_t n = ::read(fd, content->data() + bytes, content->size() - bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Status(Code::kInternal, "cannot read " + path + ": " + errno_text(errno));
    if (n == 0) break;
    bytes += static_cast<size_t>(n);
  }
  content->resize(bytes);
  if (bytes <= limit_bytes) return Status::ok();
  return Status(Code::kConfig,
                path + " is larger than the limit of " + std::to_string(limit_bytes) + " bytes");
}

}  // namespace

Result<std::string> read_private_file(const std::string& path, const std::string& what,
                                      size_t limit_bytes, Links links) {
  const int no_follow = links == Links::kRefused ? O_NOFOLLOW : 0;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | no_follow);
  if (fd < 0) {
    const Code code = errno == ENOENT ? Code::kNoInput : Code::kConfig;
    return Status(code, "cannot open the " + what + " " + path + ": " + errno_text(errno));
  }
  std::string content;
  Status status = check_private(fd, path, what);
  if (status.is_ok()) status = read_up_to(fd, path, limit_bytes, &content);
  ::close(fd);
  if (!status.is_ok()) return status;
  return content;
}

FileWatch::FileWatch(std::vector<std::string> paths) : paths_(std::move(paths)), last_(look()) {}

std::vector<FileWatch::Look> FileWatch::look() const {
  std::vector<Look> looks;
  for (const std::string& path : paths_) {
    struct stat info;
    Look& seen = looks.emplace_back();
    if (::stat(path.c_str(), &info) != 0) continue;
    seen = {info.st_dev, info.st_ino, static_cast<uint64_t>(info.st_size), info.st_ctim.tv_sec,
            info.st_ctim.tv_nsec};
  }
  return looks;
}

bool FileWatch::has_changed(int64_t now_ms, bool look_now) {
  if (!look_now && now_ms - looked_ms_ < limits::kSecretsLookMs) return false;
  looked_ms_ = now_ms;
  std::vector<Look> now = look();
  if (now == last_) return false;
  last_ = std::move(now);
  return true;
}

}  // namespace lockstep::rpc
