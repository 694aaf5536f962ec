#include "deploy/agent/log_bound.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "comm/base/descriptors.h"
#include "comm/base/file.h"

namespace lockstep {
namespace {

Status cannot(const std::string& what, const std::string& path) {
  return {Code::kInternal, "cannot " + what + " the log " + path + ": " + errno_text(errno)};
}

Result<std::string> part_of(int fd, const std::string& path, int64_t from, int64_t to) {
  std::string text(static_cast<size_t>(to - from), '\0');
  const ssize_t got = read_at(fd, static_cast<uint64_t>(from), text.size(), text.data());
  if (got < 0) return cannot("read", path);
  text.resize(static_cast<size_t>(got));
  return text;
}

Status write_older(const std::string& older, const std::string& newest) {
  const Descriptor out(
      ::open(older.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!out.is_open()) return cannot("open", older);
  return write_all(out.get(), newest) ? Status::ok() : cannot("write", older);
}

}  // namespace

Result<bool> bound_log(const std::string& path, const LogBound& bound) {
  struct stat there {};
  const bool is_file = ::lstat(path.c_str(), &there) == 0 && S_ISREG(there.st_mode);
  if (!is_file || there.st_size <= bound.beginning + bound.newest) return false;
  const Descriptor log(::open(path.c_str(), O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW));
  if (!log.is_open()) return cannot("open", path);
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string head, part_of(log.get(), path, 0, bound.beginning));
  // Whole lines; a line that is longer than the beginning is cut.
  const size_t last = head.rfind('\n');
  const auto kept = static_cast<int64_t>(last == std::string::npos ? head.size() : last + 1);
  const std::string older = path + ".1";
  const int64_t size = ::lseek(log.get(), 0, SEEK_END);
  LOCKSTEP_ASSIGN_OR_RETURN(std::string newest,
                            part_of(log.get(), path, std::max(kept, size - bound.newest), size));
  if (size - bound.newest > kept) newest.erase(0, newest.find('\n') + 1);
  LOCKSTEP_RETURN_IF_ERROR(write_older(older, newest));
  if (::ftruncate(log.get(), kept) != 0) return cannot("cut", path);
  const std::string note = std::string(kept > 0 && last == std::string::npos ? "\n" : "") +
                           "lockstep: this log grew too long: " + std::to_string(size - kept) +
                           " bytes after this line are gone but for the newest, which are in " +
                           older + "\n";
  return write_all(log.get(), note) ? Result<bool>(true) : cannot("write", path);
}

Result<bool> empty_log(const std::string& path, int64_t most) {
  constexpr int64_t kBlock = 512;  // of st_blocks
  struct stat there {};
  const bool is_file = ::lstat(path.c_str(), &there) == 0 && S_ISREG(there.st_mode);
  if (!is_file || there.st_blocks * kBlock <= most) return false;
  const Descriptor log(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (!log.is_open()) return cannot("open", path);
  const int64_t size = ::lseek(log.get(), 0, SEEK_END);
  const int64_t begin = std::max<int64_t>(0, size - most / 2);
  LOCKSTEP_ASSIGN_OR_RETURN(std::string newest, part_of(log.get(), path, begin, size));
  if (begin > 0) newest.erase(0, newest.find('\n') + 1);
  LOCKSTEP_RETURN_IF_ERROR(write_older(path + ".1", newest));
  return ::ftruncate(log.get(), 0) == 0 ? Result<bool>(true) : cannot("cut", path);
}

}  // namespace lockstep
