#include "deploy/cli/base/file_follower.h"

#include <fcntl.h>
#include <unistd.h>

#include "comm/base/byte_units.h"

namespace lockstep {

FileFollower::FileFollower(std::string path) : path_(std::move(path)) {
  const int fd = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  offset_ = ::lseek(fd, 0, SEEK_END);
  ::close(fd);
}

std::vector<std::string> FileFollower::new_lines(size_t limit, bool with_last) {
  std::vector<std::string> lines;
  const int fd = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return lines;
  std::string text(16 * kKib, '\0');
  const ssize_t n = ::pread(fd, text.data(), text.size(), offset_);
  ::close(fd);
  const bool full = n == static_cast<ssize_t>(text.size());
  text.resize(n > 0 ? static_cast<size_t>(n) : 0);
  size_t start = 0;
  while (start < text.size() && lines.size() < limit) {
    size_t end = text.find('\n', start);
    const bool unfinished = end == std::string::npos;
    // A line longer than the buffer is cut, so that it cannot hold up the lines after it.
    if (unfinished && !with_last && !(full && start == 0)) break;
    if (unfinished) end = text.size();
    std::string line = text.substr(start, end - start);
    for (char& c : line)
      if (static_cast<unsigned char>(c) < 0x20) c = ' ';
    lines.push_back(std::move(line));
    start = end + (unfinished ? 0 : 1);
  }
  offset_ += static_cast<int64_t>(start);
  return lines;
}

}  // namespace lockstep
