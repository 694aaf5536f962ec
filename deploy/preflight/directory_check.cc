#include "deploy/preflight/directory_check.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "comm/base/file.h"

namespace lockstep::preflight {
namespace {

constexpr char kSubject[] = "directory";
constexpr char kContent[] = "lockstep preflight\n";

Finding bad(const std::string& what, const std::string& advice) {
  return {kSubject, Grade::kBad, what + "; " + advice};
}

Finding cannot(const std::string& what, const std::string& path) {
  return bad("cannot " + what + " " + path + ": " + errno_text(errno),
             "a run directory needs a file system on which this user can write, link, rename and "
             "lock");
}

}  // namespace

Result<HeldLock> HeldLock::take(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return Status(Code::kConfig, "cannot open " + path + ": " + errno_text(errno));
  HeldLock lock(fd);
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0)
    return Status(Code::kConfig, "cannot lock " + path + ": " + errno_text(errno));
  return lock;
}

HeldLock::HeldLock(HeldLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

HeldLock::~HeldLock() {
  if (fd_ >= 0) ::close(fd_);
}

Finding check_operations(const std::string& folder, const std::string& name) {
  const std::string file = folder + "/" + name + ".file";
  const std::string link = folder + "/" + name + ".link";
  const std::string moved = folder + "/" + name + ".moved";
  const Status written = replace_file(file, kContent);  // with fsync of file and directory
  if (!written.is_ok()) return bad(written.message(), "check that this user may write there");
  const auto read = read_file(file, sizeof kContent);
  if (!read.is_ok() || *read != kContent)
    return bad(file + " does not read back as it was written",
               "this file system cannot hold a run; name a directory on another one");
  if (::link(file.c_str(), link.c_str()) != 0) return cannot("link", link);
  if (::rename(link.c_str(), moved.c_str()) != 0) return cannot("rename", link);
  {
    const auto lock = HeldLock::take(moved);
    if (!lock.is_ok())
      return bad(lock.status().message(), "mount the file system with locks (NFS: without nolock)");
    Finding seen = check_lock_is_seen(moved);
    if (seen.grade != Grade::kGood) return seen;
  }
  if (::unlink(file.c_str()) != 0) return cannot("remove", file);
  if (::unlink(moved.c_str()) != 0) return cannot("remove", moved);
  return {kSubject, Grade::kGood, "files can be written, flushed, linked, renamed and locked"};
}

Finding check_lock_is_seen(const std::string& path) {
  const auto lock = HeldLock::take(path);
  if (!lock.is_ok() && errno == EWOULDBLOCK)
    return {kSubject, Grade::kGood, "a lock of another process is seen"};
  if (!lock.is_ok()) return bad(lock.status().message(), "a run directory needs locks");
  return bad("a lock that another process holds on " + path + " is not visible here",
             "two runs could write to one directory: mount it with locks that all hosts share "
             "(NFS: without nolock or local_lock; Lustre: with flock)");
}

}  // namespace lockstep::preflight
