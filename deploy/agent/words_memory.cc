#include "deploy/agent/words_memory.h"

#include <sys/mman.h>
#include <unistd.h>

namespace lockstep {
namespace {

constexpr size_t kMostBytes = 4'000;

}  // namespace

WordsMemory::WordsMemory() : fd_(::memfd_create("lockstep-last-words", MFD_CLOEXEC)) {}

WordsMemory& WordsMemory::operator=(WordsMemory&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

WordsMemory::~WordsMemory() {
  if (fd_ >= 0) ::close(fd_);
}

std::string WordsMemory::text() const {
  std::string text(kMostBytes, '\0');
  const ssize_t n = fd_ < 0 ? 0 : ::pread(fd_, text.data(), text.size(), 0);
  text.resize(n > 0 ? static_cast<size_t>(n) : 0);
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 && c != '\n') c = ' ';
  return text;
}

}  // namespace lockstep
