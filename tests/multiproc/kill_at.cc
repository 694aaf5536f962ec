// Preloaded into the processes of a run: kills `lockstep run` and the coordinator right before one
// of them changes the run directory for the n-th time; the others die with their parents.
// LOCKSTEP_TEST_KILL_AT is n, counted from 1 over all processes of the run; LOCKSTEP_TEST_KILL_IN
// the run directory; LOCKSTEP_TEST_KILL_COUNT a file with the count so far, which stays outside of
// the run directory.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/harness/preload.h"

using lockstep::testing::mode_of;
using lockstep::testing::next_count;
using lockstep::testing::path_of_descriptor;
using lockstep::testing::real;

namespace {

bool is_inside(const char* path) {
  const char* directory = std::getenv("LOCKSTEP_TEST_KILL_IN");
  return directory != nullptr && path != nullptr &&
         std::strncmp(path, directory, std::strlen(directory)) == 0;
}

void before_change(const char* path) {
  const char* at = std::getenv("LOCKSTEP_TEST_KILL_AT");
  if (at == nullptr || !is_inside(path)) return;
  const char* count = std::getenv("LOCKSTEP_TEST_KILL_COUNT");
  if (count == nullptr || next_count(count) != std::atol(at)) return;
  const bool is_child = std::strcmp(program_invocation_short_name, "lockstep") != 0;
  if (is_child) ::kill(::getppid(), SIGKILL);  // else its parent is the test
  ::kill(::getpid(), SIGKILL);
}

void before_change(int fd) {
  if (std::getenv("LOCKSTEP_TEST_KILL_AT") == nullptr) return;
  before_change(path_of_descriptor(fd).c_str());
}

template <typename Open>
int open_with(Open function, const char* path, int flags, mode_t mode) {
  if ((flags & (O_CREAT | O_TRUNC)) != 0) before_change(path);
  return function(path, flags, mode);
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const mode_t mode = mode_of(flags, list);
  va_end(list);
  return open_with(real<int (*)(const char*, int, ...)>("open"), path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const mode_t mode = mode_of(flags, list);
  va_end(list);
  return open_with(real<int (*)(const char*, int, ...)>("open64"), path, flags, mode);
}

int mkdir(const char* path, mode_t mode) {
  before_change(path);
  return real<int (*)(const char*, mode_t)>("mkdir")(path, mode);
}

int rename(const char* from, const char* to) {
  before_change(to);
  return real<int (*)(const char*, const char*)>("rename")(from, to);
}

int link(const char* from, const char* to) {
  before_change(to);
  return real<int (*)(const char*, const char*)>("link")(from, to);
}

int unlink(const char* path) {
  before_change(path);
  return real<int (*)(const char*)>("unlink")(path);
}

int remove(const char* path) {
  before_change(path);
  return real<int (*)(const char*)>("remove")(path);
}

ssize_t write(int fd, const void* bytes, size_t size) {
  before_change(fd);
  static const auto function = real<ssize_t (*)(int, const void*, size_t)>("write");
  return function(fd, bytes, size);
}

ssize_t writev(int fd, const struct iovec* pieces, int count) {
  before_change(fd);
  static const auto function = real<ssize_t (*)(int, const struct iovec*, int)>("writev");
  return function(fd, pieces, count);
}

ssize_t pwrite(int fd, const void* bytes, size_t size, off_t at) {
  before_change(fd);
  static const auto function = real<ssize_t (*)(int, const void*, size_t, off_t)>("pwrite");
  return function(fd, bytes, size, at);
}

ssize_t pwrite64(int fd, const void* bytes, size_t size, off64_t at) {
  before_change(fd);
  static const auto function = real<ssize_t (*)(int, const void*, size_t, off64_t)>("pwrite64");
  return function(fd, bytes, size, at);
}

int fsync(int fd) {
  before_change(fd);
  return real<int (*)(int)>("fsync")(fd);
}

int fdatasync(int fd) {
  before_change(fd);
  return real<int (*)(int)>("fdatasync")(fd);
}

int ftruncate(int fd, off_t size) noexcept {
  before_change(fd);
  return real<int (*)(int, off_t)>("ftruncate")(fd, size);
}

int ftruncate64(int fd, off64_t size) noexcept {
  before_change(fd);
  return real<int (*)(int, off64_t)>("ftruncate64")(fd, size);
}
}
