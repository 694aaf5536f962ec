#include "data/io/mmap_reader.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <deque>
#include <utility>

#include "comm/base/check.h"
#include "comm/base/limits.h"
#include "data/base/guarded_range.h"
#include "data/base/read_at.h"

namespace lockstep::data {
namespace {

// Part of a file in memory, read-only, from the page's begin on.
class MappedExtent {
 public:
  MappedExtent(int fd, const FileExtent& extent) {
    const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
    before_ = extent.offset % page;
    bytes_ = extent.bytes + before_;
    if (extent.bytes == 0) return;
    void* data = ::mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, fd,
                        static_cast<off_t>(extent.offset - before_));
    if (data == MAP_FAILED) {
      error_ = errno;
      return;
    }
    data_ = data;
    guard_ = GuardedRange(data_, bytes_);
    (void)::madvise(data_, bytes_, MADV_WILLNEED);  // a hint: reading works without it
  }
  ~MappedExtent() {
    guard_ = GuardedRange();
    if (data_ != nullptr) ::munmap(data_, bytes_);
  }
  MappedExtent(const MappedExtent&) = delete;
  MappedExtent& operator=(const MappedExtent&) = delete;

  int error() const { return error_; }
  bool is_damaged() const { return guard_.is_damaged(); }
  void copy_to(uint8_t* out) const {
    if (data_ != nullptr)
      std::memcpy(out, static_cast<const uint8_t*>(data_) + before_, bytes_ - before_);
  }

 private:
  void* data_ = nullptr;
  uint64_t before_ = 0;  // from the page's begin
  uint64_t bytes_ = 0;   // with that
  int error_ = 0;
  GuardedRange guard_;
};

class MmapReader final : public Reader {
 public:
  const char* name() const override { return "mmap"; }
  uint32_t depth() const override { return limits::kReadsInFlight; }
  uint32_t in_flight() const override { return static_cast<uint32_t>(coming_.size()); }

  void submit(const Read& read) override {
    LOCKSTEP_CHECK(in_flight() < depth(), "more reads in flight than there may be");
    auto coming = std::make_unique<Coming>(read);
    if (coming->fd >= 0) coming->mapped = std::make_unique<MappedExtent>(coming->fd, read.extent);
    coming_.push_back(std::move(coming));
  }

  ReadDone wait() override {
    LOCKSTEP_CHECK(in_flight() > 0, "nothing is in flight");
    const auto coming = std::move(coming_.front());
    coming_.pop_front();
    return {coming->read.tag, copy(*coming)};
  }

 private:
  struct Coming {
    explicit Coming(const Read& r)
        : read(r),
          own(r.extent.fd >= 0 ? -1 : open_to_read(r.extent.path)),
          fd(r.extent.fd >= 0 ? r.extent.fd : own.get()),
          error(fd < 0 ? errno : 0) {}
    const Read read;
    const Descriptor own;  // of a file that was opened for it
    const int fd;
    const int error;  // of opening
    std::unique_ptr<MappedExtent> mapped;
  };

  static Status copy(Coming& coming) {
    const FileExtent& extent = coming.read.extent;
    if (coming.fd < 0) return cannot_open(extent, coming.error);
    for (uint32_t attempt = 1;; ++attempt) {
      if (coming.mapped->error() != 0) return cannot_read(extent, 0, coming.mapped->error());
      coming.mapped->copy_to(coming.read.out);
      // Also a cut within the last page, which reads as zeros without any signal.
      LOCKSTEP_RETURN_IF_ERROR(unchanged(coming.fd, extent));
      if (!coming.mapped->is_damaged()) return Status::ok();
      if (attempt == limits::kReadAttempts) return cannot_read(extent, 0, EIO);
      coming.mapped = std::make_unique<MappedExtent>(coming.fd, extent);
    }
  }

  std::deque<std::unique_ptr<Coming>> coming_;
};

}  // namespace

std::unique_ptr<Reader> make_mmap_reader() {
  return std::make_unique<MmapReader>();
}

}  // namespace lockstep::data
