#include "data/io/direct_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <string>

#include "comm/base/limits.h"

namespace lockstep::data {

DirectFiles::~DirectFiles() {
  for (const auto& [of, fd] : files_)
    if (fd >= 0) ::close(fd);
}

int DirectFiles::of(int fd) {
  if (const auto found = files_.find(fd); found != files_.end()) return found->second;
  if (files_.size() >= limits::kDirectFiles) return -1;
  // By its number, not by its name, which may lead elsewhere by now.
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  return files_[fd] = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT);
}

void DirectFiles::give_up(int fd) {
  int& direct = files_[fd];
  if (direct >= 0) ::close(direct);
  direct = -1;
}

}  // namespace lockstep::data
