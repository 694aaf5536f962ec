// Code shared by the libraries that tests preload into the processes of a run and that watch its
// files. Everything is inline: each library is one source file.
//
// Thread-safety: free functions, from any thread. None of them passes through the calls that a
// library replaces.
#pragma once

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <climits>
#include <cstdarg>
#include <string>

namespace lockstep::testing {

// The function that the process would call without the library.
template <typename Function>
Function real(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

inline int open_really(const char* path, int flags, mode_t mode = 0600) {
  static const auto function = real<int (*)(const char*, int, ...)>("open");
  return function(path, flags | O_CLOEXEC, mode);
}

inline ssize_t write_really(int fd, const void* bytes, size_t size) {
  static const auto function = real<ssize_t (*)(int, const void*, size_t)>("write");
  return function(fd, bytes, size);
}

// One more, over all processes that count in `file`; the file's size is the count. 0: it cannot be
// opened.
inline long next_count(const char* file) {
  const int fd = open_really(file, O_WRONLY | O_CREAT | O_APPEND);
  if (fd < 0) return 0;
  ::flock(fd, LOCK_EX);
  (void)!write_really(fd, ".", 1);
  struct stat info {};
  ::fstat(fd, &info);
  ::close(fd);
  return info.st_size;
}

// Empty: the descriptor has none.
inline std::string path_of_descriptor(int fd) {
  char path[PATH_MAX];
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t bytes = ::readlink(link.c_str(), path, sizeof path);
  return std::string(path, bytes > 0 ? static_cast<size_t>(bytes) : 0);
}

// The third argument of open(), which is there only where a file may be made.
inline mode_t mode_of(int flags, va_list list) {
  return (flags & O_CREAT) != 0 ? static_cast<mode_t>(va_arg(list, int)) : 0;
}

}  // namespace lockstep::testing
