#include "data/io/uring_reader.h"

#include <fcntl.h>
#include <liburing.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "comm/base/check.h"
#include "comm/base/file.h"
#include "comm/base/limits.h"
#include "data/base/read_at.h"
#include "data/io/bounce_buffers.h"
#include "data/io/cached_read.h"
#include "data/io/direct_files.h"

namespace lockstep::data {
namespace {

constexpr uint64_t kMostAtOnce = uint64_t{1} << 30;  // what a read may be asked for
constexpr uint32_t kUnsubmitted = 8;                 // that wait for company

Status refused(const std::string& call, int error) {
  return {Code::kConfig, call + ": " + errno_text(error)};
}

class UringReader final : public Reader {
 public:
  explicit UringReader(const UringOptions& options)
      : options_(options), slots_(limits::kReadsInFlight) {
    for (uint32_t i = 0; i < slots_.size(); ++i) free_.push_back(i);
  }

  ~UringReader() override {
    if (!is_open_) return;
    while (in_flight_ > 0) (void)wait();
    ::io_uring_queue_exit(&ring_);
  }

  Status open() {
    const int error = ::io_uring_queue_init(limits::kReadsInFlight, &ring_, 0);
    if (error < 0) return refused("io_uring_setup", -error);
    is_open_ = true;
    io_uring_probe* known = ::io_uring_get_probe_ring(&ring_);
    const bool is_enough = known != nullptr &&
                           io_uring_opcode_supported(known, IORING_OP_READ) != 0 &&
                           io_uring_opcode_supported(known, IORING_OP_OPENAT) != 0;
    ::io_uring_free_probe(known);
    return is_enough ? Status::ok() : refused("this kernel's io_uring opens no files", ENOSYS);
  }

  const char* name() const override { return "io_uring"; }
  uint32_t depth() const override { return limits::kReadsInFlight; }
  uint32_t in_flight() const override { return in_flight_; }

  void submit(const Read& read) override {
    LOCKSTEP_CHECK(in_flight_ < depth(), "more reads in flight than there may be");
    ++in_flight_;
    const uint32_t slot = free_.back();
    free_.pop_back();
    slots_[slot] = {read, read.extent.fd, 0, 0, nullptr, Step::kRead};
    if (read.extent.fd < 0)
      ask_to_open(slot);
    else
      begin(slot);
  }

  ReadDone wait() override {
    LOCKSTEP_CHECK(in_flight_ > 0, "nothing is in flight");
    while (done_.empty() || unsubmitted_ >= kUnsubmitted) turn();
    ReadDone done = std::move(done_.front());
    done_.pop_front();
    --in_flight_;
    return done;
  }

 private:
  enum class Step { kOpen, kRead, kDirect };
  struct Slot {
    Read read;
    int fd = -1;
    uint64_t done = 0;      // bytes
    uint32_t failures = 0;  // in a row
    uint8_t* bounce = nullptr;
    Step step = Step::kRead;
  };

  // Hands over what is asked for, and takes what has come.
  void turn() {
    const int n = done_.empty() ? ::io_uring_submit_and_wait(&ring_, 1) : ::io_uring_submit(&ring_);
    unsubmitted_ = ::io_uring_sq_ready(&ring_);
    if (n < 0) {
      // All others mean that we, or the kernel, have lost track of memory that is written to.
      LOCKSTEP_CHECK(n == -EINTR || n == -EAGAIN || n == -EBUSY || n == -ENOMEM,
                     "io_uring_enter failed");
      ::sched_yield();
    }
    io_uring_cqe* come = nullptr;
    while (::io_uring_peek_cqe(&ring_, &come) == 0) {
      const auto slot = static_cast<uint32_t>(come->user_data);
      const int result = come->res;
      ::io_uring_cqe_seen(&ring_, come);
      go_on(slot, result);
    }
  }

  io_uring_sqe* ask(uint32_t slot, Step step) {
    slots_[slot].step = step;
    io_uring_sqe* sqe = ::io_uring_get_sqe(&ring_);  // one a slot at most: there is room
    LOCKSTEP_CHECK(sqe != nullptr, "the ring has room for every slot");
    ++unsubmitted_;
    return sqe;
  }

  void ask_to_open(uint32_t slot) {
    io_uring_sqe* sqe = ask(slot, Step::kOpen);
    ::io_uring_prep_openat(sqe, AT_FDCWD, slots_[slot].read.extent.path.c_str(),
                           O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
    sqe->user_data = slot;
  }

  void begin(uint32_t i) {
    Slot& slot = slots_[i];
    const FileExtent& extent = slot.read.extent;
    const bool is_direct = options_.around_cache && extent.fd >= 0 &&
                           extent.bytes >= limits::kDirectBytes && !begins_in_cache(extent) &&
                           direct_.of(extent.fd) >= 0;
    if (is_direct) slot.bounce = bounce_.take();
    ask_to_read(i);
  }

  void ask_to_read(uint32_t i) {
    Slot& slot = slots_[i];
    const FileExtent& extent = slot.read.extent;
    if (extent.bytes == 0) return finish(i, unchanged(slot.fd, extent));
    const uint64_t at = extent.offset + slot.done;
    if (slot.bounce != nullptr) {
      const uint64_t begin = at / BounceBuffers::kAlignment * BounceBuffers::kAlignment;
      const uint64_t end = (extent.offset + extent.bytes + BounceBuffers::kAlignment - 1) /
                           BounceBuffers::kAlignment * BounceBuffers::kAlignment;
      io_uring_sqe* sqe = ask(i, Step::kDirect);
      ::io_uring_prep_read(sqe, direct_.of(extent.fd), slot.bounce,
                           static_cast<unsigned>(std::min(end - begin, BounceBuffers::kBytes)),
                           begin);
      sqe->user_data = i;
      return;
    }
    io_uring_sqe* sqe = ask(i, Step::kRead);
    ::io_uring_prep_read(sqe, slot.fd, slot.read.out + slot.done,
                         static_cast<unsigned>(std::min(extent.bytes - slot.done, kMostAtOnce)),
                         at);
    sqe->user_data = i;
  }

  void go_on(uint32_t i, int result) {
    Slot& slot = slots_[i];
    if (result < 0) return failed(i, -result);
    slot.failures = 0;
    if (slot.step == Step::kOpen) {
      slot.fd = result;
      return ask_to_read(i);
    }
    const FileExtent& extent = slot.read.extent;
    auto got = static_cast<uint64_t>(result);
    if (slot.step == Step::kDirect) {
      const uint64_t before = (extent.offset + slot.done) % BounceBuffers::kAlignment;
      got = got <= before ? 0 : std::min(got - before, extent.bytes - slot.done);
      std::memcpy(slot.read.out + slot.done, slot.bounce + before, got);
    }
    if (got == 0) return finish(i, was_cut_off(extent));
    slot.done += got;
    if (slot.done < extent.bytes) return ask_to_read(i);
    finish(i, unchanged(slot.fd, extent));
  }

  void failed(uint32_t i, int error) {
    Slot& slot = slots_[i];
    const FileExtent& extent = slot.read.extent;
    if (slot.step == Step::kDirect && (error == EINVAL || error == EOPNOTSUPP)) {
      direct_.give_up(extent.fd);
      bounce_.give_back(std::exchange(slot.bounce, nullptr));
      return ask_to_read(i);
    }
    const bool is_over =
        error != EINTR && (!may_pass(error) || ++slot.failures == limits::kReadAttempts);
    if (slot.step == Step::kOpen)
      return is_over ? finish(i, cannot_open(extent, error)) : ask_to_open(i);
    if (is_over) return finish(i, cannot_read(extent, slot.done, error));
    ask_to_read(i);
  }

  void finish(uint32_t i, Status status) {
    Slot& slot = slots_[i];
    if (slot.bounce != nullptr) bounce_.give_back(std::exchange(slot.bounce, nullptr));
    if (slot.read.extent.fd < 0 && slot.fd >= 0) ::close(slot.fd);
    done_.push_back({slot.read.tag, std::move(status)});
    free_.push_back(i);
  }

  const UringOptions options_;
  io_uring ring_{};
  bool is_open_ = false;
  std::vector<Slot> slots_;     // user_data is a slot's number
  std::vector<uint32_t> free_;  // of them
  std::deque<ReadDone> done_;
  uint32_t in_flight_ = 0;
  uint32_t unsubmitted_ = 0;
  BounceBuffers bounce_;
  DirectFiles direct_;
};

}  // namespace

Result<std::unique_ptr<Reader>> make_uring_reader(const FileExtent& probe,
                                                  const UringOptions& options) {
  auto reader = std::make_unique<UringReader>(options);
  LOCKSTEP_RETURN_IF_ERROR(reader->open());
  FileExtent first = probe;
  first.bytes = std::min<uint64_t>(probe.bytes, 1);
  uint8_t byte = 0;
  reader->submit({first, &byte, 0});
  const ReadDone done = reader->wait();
  if (!done.status.is_ok()) return Status(Code::kConfig, done.status.message());
  return std::unique_ptr<Reader>(std::move(reader));
}

}  // namespace lockstep::data
