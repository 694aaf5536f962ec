#include "memory.h"

#include <c10/util/Exception.h>
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <utility>

namespace lockstep::stand_in {
namespace {

constexpr size_t kPage = 4096;

struct Region {
  char* shadow;
  size_t bytes;
};

struct Late {
  uint64_t number;
  int64_t stream;
  Direction direction;
  std::function<void()> arrive;
};

struct Device {
  std::mutex mutex;
  std::map<const char*, Region> regions;  // by device address
  std::map<const char*, size_t> pinned;   // sizes
  std::deque<Late> late;
  uint64_t asked_for = 0;
  uint64_t waits = 0;
};

thread_local int64_t stream_of_thread = 0;

// Never destroyed: torch frees tensors as the process ends.
Device& device() {
  static auto* const only = new Device;
  return *only;
}

// The last entry that begins at or before `data`, if it reaches `data`, else end().
template <typename Map, typename Size>
auto entry_with(Map& map, const void* data, Size size) {
  const auto* const at = static_cast<const char*>(data);
  auto entry = map.upper_bound(at);
  if (entry == map.begin()) return map.end();
  --entry;
  return at < entry->first + size(entry->second) ? entry : map.end();
}

char* pages(size_t bytes, int protection) {
  void* const made = ::mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  TORCH_CHECK(made != MAP_FAILED, "the stand-in device has no memory left");
  return static_cast<char*>(made);
}

void free_on_device(void* address) {
  Device& d = device();
  const std::lock_guard lock(d.mutex);
  const auto entry = d.regions.find(static_cast<const char*>(address));
  if (entry == d.regions.end()) return;
  ::munmap(entry->second.shadow, entry->second.bytes);
  ::munmap(address, entry->second.bytes);
  d.regions.erase(entry);
}

class DeviceAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    const c10::Device place(c10::DeviceType::PrivateUse1, 0);
    if (bytes == 0) return {nullptr, nullptr, &free_on_device, place};
    const size_t whole = (bytes + kPage - 1) / kPage * kPage;
    char* const address = pages(whole, PROT_NONE);
    char* const shadow = pages(whole, PROT_READ | PROT_WRITE);
    Device& d = device();
    const std::lock_guard lock(d.mutex);
    d.regions[address] = {shadow, whole};
    return {address, address, &free_on_device, place};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_on_device; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    std::memcpy(shadow_of(to), shadow_of(from), bytes);
  }
};

void free_pinned(void* data) {
  Device& d = device();
  const std::lock_guard lock(d.mutex);
  d.pinned.erase(static_cast<const char*>(data));
  std::free(data);
}

class PinnedAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    const c10::Device place(c10::DeviceType::CPU);
    void* const data = std::aligned_alloc(64, (bytes + 64) / 64 * 64);
    TORCH_CHECK(data != nullptr, "the host has no memory left");
    pin(data, bytes);
    return {data, data, &free_pinned, place};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_pinned; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    std::memcpy(to, from, bytes);
  }
};

// Delivers the copies for which `is_due` is true, in order. They run outside of the lock, because
// they allocate.
template <typename IsDue>
void deliver(IsDue is_due) {
  Device& d = device();
  std::deque<Late> due;
  {
    const std::lock_guard lock(d.mutex);
    std::deque<Late> left;
    for (Late& late : d.late) (is_due(late) ? due : left).push_back(std::move(late));
    d.late = std::move(left);
  }
  for (const Late& late : due) late.arrive();
}

}  // namespace

c10::Allocator* device_allocator() {
  static auto* const only = new DeviceAllocator;
  return only;
}

c10::Allocator* pinned_allocator() {
  static auto* const only = new PinnedAllocator;
  return only;
}

bool is_pinned(const void* data) {
  Device& d = device();
  const std::lock_guard lock(d.mutex);
  return entry_with(d.pinned, data, [](size_t size) { return size; }) != d.pinned.end();
}

void pin(const void* data, size_t bytes) {
  Device& d = device();
  const std::lock_guard lock(d.mutex);
  d.pinned[static_cast<const char*>(data)] = bytes;
}

void* shadow_of(const void* device_address) {
  Device& d = device();
  const std::lock_guard lock(d.mutex);
  const auto entry =
      entry_with(d.regions, device_address, [](const Region& region) { return region.bytes; });
  if (entry == d.regions.end()) return nullptr;
  return entry->second.shadow + (static_cast<const char*>(device_address) - entry->first);
}

int64_t exchange_stream(int64_t stream) {
  return std::exchange(stream_of_thread, stream);
}

int64_t current_stream() {
  return stream_of_thread;
}

void arrives_late(Direction direction, std::function<void()> arrive) {
  Device& d = device();
  const std::lock_guard lock(d.mutex);
  d.late.push_back({++d.asked_for, stream_of_thread, direction, std::move(arrive)});
}

void arrive_on_device() {
  deliver([](const Late& late) {
    return late.direction == Direction::kToDevice && late.stream == stream_of_thread;
  });
}

uint64_t asked_for() {
  Device& d = device();
  const std::lock_guard lock(d.mutex);
  return d.asked_for;
}

bool has_arrived(uint64_t until) {
  Device& d = device();
  const std::lock_guard lock(d.mutex);
  return d.late.empty() || d.late.front().number > until;
}

void arrive(uint64_t until) {
  deliver([until](const Late& late) { return late.number <= until; });
}

void wait_for(uint64_t until) {
  {
    Device& d = device();
    const std::lock_guard lock(d.mutex);
    ++d.waits;
  }
  arrive(until);
}

uint64_t waits() {
  Device& d = device();
  const std::lock_guard lock(d.mutex);
  return d.waits;
}

}  // namespace lockstep::stand_in
