// Preloaded into the processes of a run. Makes their disk fail, or lose in a power cut what no
// process has synced.
//
//   LOCKSTEP_TEST_DISK_IN     the run directory; calls on other files pass
//   LOCKSTEP_TEST_DISK_FILE   a part of the paths that count
//   LOCKSTEP_TEST_DISK_CALL   sync, write, name (rename, link, unlink), or make (open, mkdir)
//   LOCKSTEP_TEST_DISK_AT     the first such call that fails, counted from 1 over all processes;
//                             with "+" at its end all later ones fail, too
//   LOCKSTEP_TEST_DISK_DO     the number of an error; "short": writes half of the bytes; "cut":
//                             kills all processes right before the call; "die": kills the caller
//   LOCKSTEP_TEST_DISK_STATE  a directory outside of the run directory: the count, and what a power
//                             cut undoes (lost_writes.py)
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "tests/harness/preload.h"

using lockstep::testing::mode_of;
using lockstep::testing::next_count;
using lockstep::testing::open_really;
using lockstep::testing::path_of_descriptor;
using lockstep::testing::real;
using lockstep::testing::write_really;

namespace {

ssize_t pwrite_really(int fd, const void* bytes, size_t size, off_t at) {
  static const auto function = real<ssize_t (*)(int, const void*, size_t, off_t)>("pwrite");
  return function(fd, bytes, size, at);
}

std::string_view setting(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

std::string state_file(const std::string& name) {
  return std::string(setting("LOCKSTEP_TEST_DISK_STATE")) + "/" + name;
}

void append_line(const std::string& name, const std::string& line) {
  const int fd = open_really(state_file(name).c_str(), O_WRONLY | O_CREAT | O_APPEND);
  if (fd < 0) return;
  (void)!write_really(fd, line.data(), line.size());
  ::close(fd);
}

bool is_inside(std::string_view path) {
  const std::string_view directory = setting("LOCKSTEP_TEST_DISK_IN");
  return !directory.empty() && path.starts_with(directory);
}

// Empty if the file is not in the run directory.
std::string path_of(int fd) {
  if (setting("LOCKSTEP_TEST_DISK_IN").empty()) return {};
  const std::string found = path_of_descriptor(fd);
  return is_inside(found) ? found : std::string();
}

// Kills the session, which has all processes of the run (harness.py).
void cut_power() {
  DIR* const processes = ::opendir("/proc");
  const pid_t session = ::getsid(0);
  while (const dirent* entry = processes == nullptr ? nullptr : ::readdir(processes)) {
    const auto pid = static_cast<pid_t>(std::atol(entry->d_name));
    if (pid > 0 && pid != ::getpid() && ::getsid(pid) == session) ::kill(pid, SIGKILL);
  }
  ::kill(::getpid(), SIGKILL);
}

enum class Fault { kNone, kError, kShort };

// Sets errno for kError.
Fault fault_of(std::string_view call, std::string_view path) {
  if (path.empty() || call != setting("LOCKSTEP_TEST_DISK_CALL") ||
      path.find(setting("LOCKSTEP_TEST_DISK_FILE")) == std::string_view::npos)
    return Fault::kNone;
  const std::string_view at = setting("LOCKSTEP_TEST_DISK_AT");
  const long wanted = std::atol(at.data());
  const long count = next_count(state_file("count").c_str());
  if (count < wanted || (count > wanted && !at.ends_with('+'))) return Fault::kNone;
  const std::string_view what = setting("LOCKSTEP_TEST_DISK_DO");
  if (what == "short") return Fault::kShort;
  if (what == "cut") cut_power();
  if (what == "die") ::kill(::getpid(), SIGKILL);
  append_line("failed", std::string(path) + "\n");
  errno = std::atoi(what.data());
  return Fault::kError;
}

// ---- what a power cut undoes ----

bool remembers() {
  return setting("LOCKSTEP_TEST_DISK_DO") == "cut";
}

std::string shadow_of(int fd) {
  struct stat info {};
  const bool is_file = ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
  return is_file ? state_file("inode-" + std::to_string(info.st_ino)) : std::string();
}

// Keeps the content that is on the disk before the first write after a sync. The copy gets its name
// when it is whole: a process that dies while it copies has written nothing yet.
void before_write(int fd, const std::string& path) {
  if (path.empty() || !remembers()) return;
  const std::string shadow = shadow_of(fd);
  if (shadow.empty() || ::access(shadow.c_str(), F_OK) == 0) return;
  static const auto link_really = real<int (*)(const char*, const char*)>("link");
  static const auto unlink_really = real<int (*)(const char*)>("unlink");
  const std::string part = state_file("part-" + std::to_string(::gettid()));
  const int copy = open_really(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC);
  const int from = open_really(path.c_str(), O_RDONLY);
  char buffer[1 << 16];
  for (ssize_t got = 0; from >= 0 && (got = ::read(from, buffer, sizeof buffer)) > 0;)
    (void)!write_really(copy, buffer, static_cast<size_t>(got));
  if (copy >= 0) ::close(copy);
  if (from >= 0) ::close(from);
  (void)!link_really(part.c_str(), shadow.c_str());  // unless it is there by now
  unlink_really(part.c_str());
}

void after_sync(int fd, const std::string& path) {
  if (path.empty() || !remembers()) return;
  static const auto unlink_really = real<int (*)(const char*)>("unlink");
  const std::string shadow = shadow_of(fd);
  if (!shadow.empty())
    unlink_really(shadow.c_str());
  else
    append_line("names", "synced\t" + path + "\n");  // a directory
}

// A link keeps the old file of the new name.
void before_rename(const std::string& from, const std::string& to) {
  if (!remembers() || !is_inside(to)) return;
  static const auto link_really = real<int (*)(const char*, const char*)>("link");
  struct stat info {};
  std::string kept;
  if (::lstat(to.c_str(), &info) == 0 && S_ISREG(info.st_mode)) {
    kept = state_file("old-" + std::to_string(info.st_ino));
    (void)!link_really(to.c_str(), kept.c_str());
  }
  append_line("names", "renamed\t" + from + "\t" + to + "\t" + kept + "\n");
}

template <typename Write>
ssize_t written(int fd, size_t size, const Write& write_some) {
  const std::string path = path_of(fd);
  const Fault fault = fault_of("write", path);
  if (fault == Fault::kError) return -1;
  before_write(fd, path);
  return write_some(fault == Fault::kShort ? (size + 1) / 2 : size);
}

int synced(int fd, const char* name) {
  const std::string path = path_of(fd);
  if (fault_of("sync", path) == Fault::kError) return -1;
  const int result = real<int (*)(int)>(name)(fd);
  if (result == 0) after_sync(fd, path);
  return result;
}

int opened(const char* name, const char* path, int flags, mode_t mode) {
  const bool makes = (flags & (O_CREAT | O_TRUNC)) != 0 && is_inside(path);
  if (makes && fault_of("make", path) == Fault::kError) return -1;
  if (makes && (flags & O_TRUNC) != 0) {
    const int there = open_really(path, O_RDONLY);
    if (there >= 0) before_write(there, path);
    if (there >= 0) ::close(there);
  }
  return real<int (*)(const char*, int, ...)>(name)(path, flags, mode);
}

int named(const char* path) {
  return is_inside(path) && fault_of("name", path) == Fault::kError ? -1 : 0;
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const mode_t mode = mode_of(flags, list);
  va_end(list);
  return opened("open", path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const mode_t mode = mode_of(flags, list);
  va_end(list);
  return opened("open64", path, flags, mode);
}

int mkdir(const char* path, mode_t mode) {
  if (is_inside(path) && fault_of("make", path) == Fault::kError) return -1;
  return real<int (*)(const char*, mode_t)>("mkdir")(path, mode);
}

int rename(const char* from, const char* to) {
  if (named(to) != 0) return -1;
  before_rename(from, to);
  return real<int (*)(const char*, const char*)>("rename")(from, to);
}

int link(const char* from, const char* to) {
  if (named(to) != 0) return -1;
  return real<int (*)(const char*, const char*)>("link")(from, to);
}

int unlink(const char* path) {
  if (named(path) != 0) return -1;
  return real<int (*)(const char*)>("unlink")(path);
}

ssize_t write(int fd, const void* bytes, size_t size) {
  return written(fd, size, [&](size_t some) { return write_really(fd, bytes, some); });
}

ssize_t writev(int fd, const struct iovec* pieces, int count) {
  static const auto function = real<ssize_t (*)(int, const struct iovec*, int)>("writev");
  return written(fd, 2, [&](size_t some) {
    return some == 2 ? function(fd, pieces, count) : function(fd, pieces, 1);
  });
}

ssize_t pwrite(int fd, const void* bytes, size_t size, off_t at) {
  return written(fd, size, [&](size_t some) { return pwrite_really(fd, bytes, some, at); });
}

ssize_t pwrite64(int fd, const void* bytes, size_t size, off64_t at) {
  return pwrite(fd, bytes, size, at);
}

int fsync(int fd) {
  return synced(fd, "fsync");
}

int fdatasync(int fd) {
  return synced(fd, "fdatasync");
}

int ftruncate(int fd, off_t size) noexcept {
  const std::string path = path_of(fd);
  if (fault_of("write", path) == Fault::kError) return -1;
  before_write(fd, path);
  return real<int (*)(int, off_t)>("ftruncate")(fd, size);
}

int ftruncate64(int fd, off64_t size) noexcept {
  return ftruncate(fd, size);
}
}
