#include "data/index/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "comm/base/file.h"

namespace lockstep::data {

Result<MappedFile> MappedFile::open(const std::string& path) {
  // O_NONBLOCK: opening a FIFO that somebody left there must not hang.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return Status(Code::kNoInput, "cannot open " + path + ": " + errno_text(errno));
  struct stat info {};
  Status status;
  MappedFile file;
  if (::fstat(fd, &info) != 0)
    status = Status(Code::kInternal, "cannot stat " + path + ": " + errno_text(errno));
  else if (!S_ISREG(info.st_mode))
    status = Status(Code::kNoInput, path + " is not a regular file");
  if (status.is_ok() && info.st_size > 0) {
    void* data = ::mmap(nullptr, static_cast<size_t>(info.st_size), PROT_READ, MAP_SHARED, fd, 0);
    if (data == MAP_FAILED) {
      status = Status(Code::kInternal, "cannot map " + path + ": " + errno_text(errno));
    } else {
      file.data_ = static_cast<const uint8_t*>(data);
      file.size_ = static_cast<size_t>(info.st_size);
    }
  }
  file.modified_ns_ = int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
  ::close(fd);
  if (!status.is_ok()) return status;
  return file;
}

MappedFile::MappedFile(MappedFile&& other) noexcept {
  *this = std::move(other);
}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(modified_ns_, other.modified_ns_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<uint8_t*>(data_), size_);
}

void MappedFile::will_need() const {
  // A hint: reading works without it.
  if (data_ != nullptr) (void)::madvise(const_cast<uint8_t*>(data_), size_, MADV_WILLNEED);
}

}  // namespace lockstep::data
