#include "comm/base/work_in_hand.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <random>
#include <utility>

#include "comm/base/file.h"
#include "comm/base/limits.h"

namespace lockstep {
namespace {

// A mark is one word, so no reader sees half a mark. 0: nothing; else 1 + step * slots + slot.
constexpr uint64_t kSlots = limits::kSlots;

uint64_t mark_of(Step step, uint32_t slot) {
  return 1 + step * kSlots + slot;
}

uint64_t random_number() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

void add(std::vector<SlotInHand>& to, uint64_t mark, bool is_read) {
  if (mark == 0) return;
  to.push_back({(mark - 1) / kSlots, static_cast<uint32_t>((mark - 1) % kSlots), is_read});
}

}  // namespace

struct WorkInHand::Marks {
  uint64_t process;
  std::atomic<uint64_t> read;
  std::atomic<uint64_t> computed;
  std::atomic<uint64_t> registered;  // 0: not yet
  std::atomic<uint64_t> gpu[2];      // halves of the UUID; 0: not told
};

WorkInHand::WorkInHand(WorkInHand&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      marks_(std::exchange(other.marks_, nullptr)) {}

WorkInHand& WorkInHand::operator=(WorkInHand&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(marks_, other.marks_);
  return *this;
}

WorkInHand::~WorkInHand() {
  if (marks_ != nullptr) ::munmap(marks_, sizeof(Marks));
  if (descriptor_ >= 0) ::close(descriptor_);
}

Result<WorkInHand> WorkInHand::make() {
  const int descriptor = ::memfd_create("lockstep-work-in-hand", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  // Sealed, because a worker that shortened the memory would kill its agent.
  if (descriptor < 0 || ::ftruncate(descriptor, sizeof(Marks)) != 0 ||
      ::fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    const Status status(
        Code::kInternal,
        "cannot make the shared memory that shows a worker's samples: " + errno_text(errno));
    if (descriptor >= 0) ::close(descriptor);
    return status;
  }
  LOCKSTEP_ASSIGN_OR_RETURN(WorkInHand work, map(descriptor));
  work.marks_->process = random_number();
  return work;
}

// Memory of another size would be touched beyond its end.
Result<WorkInHand> WorkInHand::attach(int descriptor) {
  struct stat info {};
  if (::fstat(descriptor, &info) != 0 || info.st_size != sizeof(Marks)) {
    return Status(Code::kConfig, "descriptor " + std::to_string(descriptor) +
                                     " is not the shared memory that shows a worker's samples; "
                                     "start workers with `lockstep agent`");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(WorkInHand work, map(descriptor));
  ::close(std::exchange(work.descriptor_, -1));
  return work;
}

Result<WorkInHand> WorkInHand::map(int descriptor) {
  void* memory = ::mmap(nullptr, sizeof(Marks), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (memory == MAP_FAILED) {
    const Status status(
        Code::kInternal,
        "cannot map the shared memory that shows a worker's samples: " + errno_text(errno));
    ::close(descriptor);
    return status;
  }
  return WorkInHand(descriptor, static_cast<Marks*>(memory));
}

void WorkInHand::reads(Step step, uint32_t slot) {
  marks_->read.store(mark_of(step, slot), std::memory_order_relaxed);
}

void WorkInHand::has_read() {
  marks_->read.store(0, std::memory_order_relaxed);
}

void WorkInHand::computes(Step step, uint32_t slot) {
  marks_->computed.store(mark_of(step, slot), std::memory_order_relaxed);
}

void WorkInHand::has_computed() {
  marks_->computed.store(0, std::memory_order_relaxed);
}

void WorkInHand::has_been_registered() {
  marks_->registered.store(1, std::memory_order_relaxed);
}

bool WorkInHand::has_registered() const {
  return marks_->registered.load(std::memory_order_relaxed) != 0;
}

void WorkInHand::is_on_gpu(const std::string& uuid) {
  uint64_t halves[2] = {};
  if (uuid.size() != 32) return;
  for (size_t i = 0; i < 2; ++i) {
    const char* const begin = uuid.data() + 16 * i;
    const auto read = std::from_chars(begin, begin + 16, halves[i], 16);
    if (read.ec != std::errc() || read.ptr != begin + 16) return;
  }
  for (size_t i = 0; i < 2; ++i) marks_->gpu[i].store(halves[i], std::memory_order_relaxed);
}

std::string WorkInHand::gpu() const {
  const uint64_t halves[2] = {marks_->gpu[0].load(std::memory_order_relaxed),
                              marks_->gpu[1].load(std::memory_order_relaxed)};
  if (halves[0] == 0 && halves[1] == 0) return "";
  std::array<char, 33> text = {};
  std::snprintf(text.data(), text.size(), "%016" PRIx64 "%016" PRIx64, halves[0], halves[1]);
  return text.data();
}

InHand WorkInHand::get() const {
  InHand found{marks_->process, {}};
  add(found.slots, marks_->read.load(std::memory_order_relaxed), true);
  add(found.slots, marks_->computed.load(std::memory_order_relaxed), false);
  return found;
}

}  // namespace lockstep
