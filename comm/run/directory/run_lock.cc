#include "comm/run/directory/run_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <filesystem>

#include "comm/base/descriptors.h"
#include "comm/base/file.h"
#include "comm/run/directory/claim.h"

namespace lockstep {
namespace {

std::string directory_of(const std::string& journal) {
  return std::filesystem::path(journal).parent_path().string();
}

}  // namespace

Status cannot_lock(const std::string& path) {
  return {Code::kConfig, "cannot lock " + path + ": " + errno_text(errno) +
                             "; mount its file system with locks (NFS: without nolock; Lustre: "
                             "with flock), or choose another --run-dir"};
}

Result<std::unique_ptr<RunLock>> RunLock::take(const std::string& journal) {
  const std::string path = lock_path(journal);
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (fd < 0) return Status(Code::kNoInput, "cannot open " + path + ": " + errno_text(errno));
  std::unique_ptr<RunLock> lock(new RunLock(fd));
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return cannot_lock(path);
    char pid[32] = {};
    const ssize_t got = ::pread(fd, pid, sizeof(pid) - 1, 0);
    return Status(Code::kUsage, "the run directory " + directory_of(journal) +
                                    " is in use by the coordinator with pid " +
                                    (got > 0 ? std::string(pid) : std::string("(unknown)")) +
                                    ": wait for it, stop it, or choose another --run-dir");
  }
  const std::string pid = std::to_string(::getpid());
  if (::ftruncate(fd, 0) != 0 || !write_all_at(fd, pid, 0)) {
    return Status(Code::kInternal, "cannot write " + path + ": " + errno_text(errno));
  }
  return lock;
}

Result<std::unique_ptr<RunLock>> RunLock::take_to_read(const std::string& journal) {
  const std::string path = lock_path(journal);
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  // The journal has a lock of its own against a living writer.
  if (fd < 0 && ::access(journal.c_str(), F_OK) == 0)
    return std::unique_ptr<RunLock>(new RunLock(-1));
  if (fd < 0) return Status(Code::kNoInput, "there is no run in " + directory_of(journal));
  std::unique_ptr<RunLock> lock(new RunLock(fd));
  if (::flock(fd, LOCK_SH | LOCK_NB) == 0) return lock;
  if (errno != EWOULDBLOCK) return cannot_lock(path);
  return Status(Code::kUsage,
                "the run in " + directory_of(journal) +
                    " still goes on: wait for its end or stop it, and then ask again; "
                    "`lockstep status` tells how it is doing");
}

RunLock::~RunLock() {
  if (fd_ >= 0) ::close(fd_);
}

Result<std::string> absolute_path(const std::string& path) {
  char buffer[PATH_MAX];
  if (::realpath(path.c_str(), buffer) == nullptr) {
    return Status(Code::kNoInput, "there is no directory " + path + ": " + errno_text(errno));
  }
  return std::string(buffer);
}

}  // namespace lockstep
