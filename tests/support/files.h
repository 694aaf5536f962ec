// Whole files, for tests.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace lockstep {

// Replaces an existing file.
inline void write_file(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
}

// Empty if there is no such file.
inline std::string slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Writes a byte into a file, and sets its old time of change again, as `touch -r` does. Returns
// once the file system's clock has ticked, so that the inode has another time.
inline void write_and_put_time_back(const std::string& path, off_t offset, char byte) {
  struct stat before {};
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (::fstat(fd, &before) != 0) std::abort();
  const timespec times[2] = {before.st_atim, before.st_mtim};
  struct stat now = before;
  while (now.st_ctim.tv_sec == before.st_ctim.tv_sec &&
         now.st_ctim.tv_nsec == before.st_ctim.tv_nsec) {
    if (::pwrite(fd, &byte, 1, offset) != 1 || ::futimens(fd, times) != 0) std::abort();
    if (::fstat(fd, &now) != 0) std::abort();
  }
  ::close(fd);
}

// Names of everything in a directory, hidden files too, in order.
inline std::vector<std::string> names_in(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace lockstep
