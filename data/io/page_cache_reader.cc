#include "data/io/page_cache_reader.h"

#include <fcntl.h>

#include <cerrno>
#include <deque>
#include <utility>

#include "comm/base/byte_units.h"
#include "comm/base/check.h"
#include "comm/base/descriptors.h"
#include "comm/base/limits.h"

namespace lockstep::data {
namespace {

// One wait() with nothing done copies this many reads, or fewer if they have this many bytes.
constexpr size_t kReadsAtOnce = 8;
constexpr uint64_t kBytesAtOnce = 128 * kKib;

class PageCacheReader final : public Reader {
 public:
  const char* name() const override { return "mmap"; }  // the value of data.reader that asks for it
  uint32_t depth() const override { return limits::kReadsInFlight; }
  uint32_t in_flight() const override {
    return static_cast<uint32_t>(coming_.size() + done_.size());
  }

  void submit(const Read& read) override {
    LOCKSTEP_CHECK(in_flight() < depth(), "more reads in flight than there may be");
    const Coming& coming = coming_.emplace_back(read);
    const FileExtent& extent = read.extent;
    if (coming.fd >= 0)  // a hint: reading works without it
      (void)::posix_fadvise(coming.fd, static_cast<off_t>(extent.offset),
                            static_cast<off_t>(extent.bytes), POSIX_FADV_WILLNEED);
  }

  ReadDone wait() override {
    LOCKSTEP_CHECK(in_flight() > 0, "nothing is in flight");
    if (done_.empty()) read_oldest();
    ReadDone done = std::move(done_.front());
    done_.pop_front();
    return done;
  }

  bool has_done() override { return !done_.empty(); }

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
  };

  void read_oldest() {
    uint64_t bytes = 0;
    while (!coming_.empty() && done_.size() < kReadsAtOnce && bytes < kBytesAtOnce) {
      const Coming& oldest = coming_.front();
      const FileExtent& extent = oldest.read.extent;
      bytes += extent.bytes;
      done_.push_back(
          {oldest.read.tag, oldest.fd < 0 ? cannot_open(extent, oldest.error)
                                          : read_open_extent(oldest.fd, extent, oldest.read.out)});
      coming_.pop_front();
    }
  }

  std::deque<Coming> coming_;
  std::deque<ReadDone> done_;
};

}  // namespace

std::unique_ptr<Reader> make_page_cache_reader() {
  return std::make_unique<PageCacheReader>();
}

}  // namespace lockstep::data
