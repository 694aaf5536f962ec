#include "data/pack/hold_directory.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>

#include "comm/base/file.h"

namespace lockstep::data {

Result<std::unique_ptr<Descriptor>> hold_directory(const std::string& directory) {
  auto held =
      std::make_unique<Descriptor>(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (held->get() < 0)
    return Status(Code::kUsage, "cannot open directory " + directory + ": " + errno_text(errno));
  if (::flock(held->get(), LOCK_EX | LOCK_NB) == 0) return held;
  if (errno == EWOULDBLOCK)
    return Status(Code::kUsage, "another lockstep data pack is writing " + directory);
  return held;
}

}  // namespace lockstep::data
