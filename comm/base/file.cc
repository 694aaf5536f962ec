#include "comm/base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "comm/base/byte_units.h"
#include "comm/base/descriptors.h"

namespace lockstep {
namespace {

Status failed(const char* what, const std::string& path) {
  const int error = errno;
  const Code code = error == ENOENT ? Code::kNoInput : Code::kInternal;
  return Status(code, std::string(what) + " " + path + ": " + errno_text(error));
}

}  // namespace

std::string errno_text(int error) {
  return std::string(std::strerror(error)) + " (errno " + std::to_string(error) + ")";
}

Result<std::string> read_file(const std::string& path, size_t limit_bytes) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return failed("cannot open", path);
  std::string content;
  char chunk[64 * kKib];
  Status status;
  for (;;) {
    const ssize_t n = ::read(fd, chunk, sizeof chunk);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) status = failed("cannot read", path);
    if (n <= 0) break;
    content.append(chunk, static_cast<size_t>(n));
    if (content.size() > limit_bytes) {
      status = Status(Code::kUsage, path + " is larger than the limit of " +
                                        std::to_string(limit_bytes) + " bytes");
      break;
    }
  }
  ::close(fd);
  if (!status.is_ok()) return status;
  return content;
}

Status sync_directory(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return failed("cannot open directory", path);
  const int rc = ::fsync(fd);
  Status status = rc == 0 ? Status::ok() : failed("cannot fsync directory", path);
  ::close(fd);
  return status;
}

int create_own_file(const std::string& path, int mode) {
  constexpr int kFlags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  const int fd = ::open(path.c_str(), kFlags, static_cast<mode_t>(mode));
  if (fd >= 0 || errno != EEXIST) return fd;
  // A killed process with our pid has left it, or an attacker waits for us to follow it.
  if (::unlink(path.c_str()) != 0) return -1;
  return ::open(path.c_str(), kFlags, static_cast<mode_t>(mode));
}

Status replace_file(const std::string& path, std::string_view content, int mode) {
  const std::string temporary = path + ".tmp." + std::to_string(::getpid());
  const int fd = create_own_file(temporary, mode);
  if (fd < 0) return failed("cannot create", temporary);
  Status status = write_all(fd, content) ? Status::ok() : failed("cannot write", temporary);
  if (status.is_ok() && ::fsync(fd) != 0) status = failed("cannot fsync", temporary);
  if (::close(fd) != 0 && status.is_ok()) status = failed("cannot close", temporary);
  if (status.is_ok() && ::rename(temporary.c_str(), path.c_str()) != 0)
    status = failed("cannot rename to", path);
  if (!status.is_ok()) {
    ::unlink(temporary.c_str());
    return status;
  }
  const size_t slash = path.rfind('/');
  return sync_directory(slash == std::string::npos ? "." : path.substr(0, slash + 1));
}

}  // namespace lockstep
