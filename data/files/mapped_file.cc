#include "data/files/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <mutex>
#include <utility>

#include "comm/base/descriptors.h"
#include "comm/base/file.h"
#include "data/base/change_mark.h"
#include "data/base/modified_ns.h"
#include "data/base/sampled_hash.h"

namespace lockstep::data {
namespace {

// Every file of a dataset stays open, and there may be thousands.
int open_file(const std::string& path) {
  // O_NONBLOCK: opening a FIFO that lies there must not hang.
  const auto try_it = [&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); };
  const int fd = try_it();
  if (fd >= 0 || errno != EMFILE) return fd;
  allow_many_descriptors();
  return try_it();
}

}  // namespace

// The file as this process saw it. The mark follows the file, as long as its content stays.
struct MappedFile::Seen {
  std::atomic<uint64_t> mark = 0;
  uint64_t content = 0;  // content_mark(); 0: not remembered
  std::mutex looking;
};

MappedFile::MappedFile() : seen_(std::make_unique<Seen>()) {}

Result<MappedFile> MappedFile::open(const std::string& path) {
  MappedFile file;
  file.path_ = path;
  file.fd_ = open_file(path);
  if (file.fd_ < 0) return Status(Code::kNoInput, "cannot open " + path + ": " + errno_text(errno));
  struct stat info {};
  if (::fstat(file.fd_, &info) != 0)
    return Status(Code::kInternal, "cannot stat " + path + ": " + errno_text(errno));
  if (!S_ISREG(info.st_mode)) return Status(Code::kNoInput, path + " is not a regular file");
  file.modified_ns_ = data::modified_ns(info);
  file.seen_->mark = change_mark(info);
  if (info.st_size == 0) return file;
  const auto bytes = static_cast<size_t>(info.st_size);
  void* data = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file.fd_, 0);
  if (data == MAP_FAILED)
    return Status(Code::kInternal, "cannot map " + path + ": " + errno_text(errno));
  file.data_ = static_cast<const uint8_t*>(data);
  file.size_ = bytes;
  file.guard_ = GuardedRange(data, bytes);
  return file;
}

MappedFile::MappedFile(MappedFile&& other) noexcept {
  *this = std::move(other);
}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(modified_ns_, other.modified_ns_);
  std::swap(seen_, other.seen_);
  guard_ = std::move(other.guard_);
  return *this;
}

MappedFile::~MappedFile() {
  guard_ = GuardedRange();
  if (data_ != nullptr) ::munmap(const_cast<uint8_t*>(data_), size_);
  if (fd_ >= 0) ::close(fd_);
}

void MappedFile::will_need() const {
  // A hint: reading works without it.
  if (data_ != nullptr) (void)::madvise(const_cast<uint8_t*>(data_), size_, MADV_WILLNEED);
}

void MappedFile::remember_content() {
  if (size_ > 0 && size_ <= kWholeContentBytes) seen_->content = content_mark(bytes());
}

// The first thread looks, and the others wait for what it finds.
bool MappedFile::is_rewritten(const struct stat& now) const {
  const uint64_t mark = change_mark(now);
  if (mark == seen_->mark) return false;
  const std::lock_guard lock(seen_->looking);
  if (mark == seen_->mark) return false;
  const bool is_other = seen_->content == 0
                            ? data::is_rewritten(fd_, path_, now, seen_->mark)
                            : has_change_marks(fd_) && content_mark(bytes()) != seen_->content;
  if (!is_other) seen_->mark = mark;
  return is_other;
}

Status MappedFile::unchanged() const {
  struct stat info {};
  const bool is_known = ::fstat(fd_, &info) == 0;
  const bool is_alike = is_known && static_cast<uint64_t>(info.st_size) == size_ &&
                        data::modified_ns(info) == modified_ns_;
  const bool is_same = is_alike && !is_rewritten(info);
  if (is_same && !guard_.is_damaged()) return Status::ok();
  if (is_same)
    return {Code::kBadData, path_ +
                                " could not be read: its disk or its server failed. Resume the run "
                                "when the file can be read"};
  const std::string how =
      is_alike ? " has changed under the run: it was written to, though its size and its time of "
                 "change are the old ones"
               : " has changed under the run: it had " + std::to_string(size_) +
                     " bytes when it was opened and has " +
                     (is_known ? std::to_string(info.st_size) : "an unknown number of") +
                     " now, or was written to";
  return {Code::kBadData, path_ + how +
                              ". Put the old content back and resume the run, which compares it; "
                              "never change data under a run, replace them by rename"};
}

}  // namespace lockstep::data
