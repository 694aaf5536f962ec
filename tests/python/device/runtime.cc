// The parts of a device that torch needs besides kernels: the current device and stream, events,
// and pinned memory. There is one device. Kernels run at once, whatever their stream.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include <atomic>

#include "memory.h"
#include "random.h"

namespace lockstep::stand_in {
namespace {

constexpr c10::DeviceType kType = c10::DeviceType::PrivateUse1;

// The copies that an event has recorded. Its first query comes too early.
struct Event {
  uint64_t until = 0;
  bool was_asked = false;
};

class Guard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return kType; }
  c10::Device exchangeDevice(c10::Device) const override { return getDevice(); }
  c10::Device getDevice() const override { return {kType, 0}; }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }

  c10::Stream getStream(c10::Device device) const override {
    return c10::Stream(c10::Stream::UNSAFE, device, current_stream());
  }
  c10::Stream getDefaultStream(c10::Device device) const override {
    return c10::Stream(c10::Stream::DEFAULT, device);
  }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override {
    return getNewStream(device, 0);
  }
  c10::Stream getNewStream(c10::Device device, int) const override {
    static std::atomic<int64_t> made = 0;
    return c10::Stream(c10::Stream::UNSAFE, device, ++made);
  }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    return c10::Stream(c10::Stream::UNSAFE, stream.device(), exchange_stream(stream.id()));
  }
  bool queryStream(const c10::Stream&) const override { return has_arrived(asked_for()); }
  void synchronizeStream(const c10::Stream&) const override { wait_for(asked_for()); }
  void synchronizeDevice(c10::DeviceIndex) const override { wait_for(asked_for()); }

  void record(void** event, const c10::Stream&, c10::DeviceIndex, c10::EventFlag) const override {
    if (*event == nullptr) *event = new Event;
    *static_cast<Event*>(*event) = {asked_for(), false};
  }
  void block(void* event, const c10::Stream&) const override {
    arrive(static_cast<Event*>(event)->until);
  }
  bool queryEvent(void* event) const override {
    auto& asked = *static_cast<Event*>(event);
    if (has_arrived(asked.until)) return true;
    if (!std::exchange(asked.was_asked, true)) return false;
    arrive(asked.until);
    return true;
  }
  void synchronizeEvent(void* event) const override { wait_for(static_cast<Event*>(event)->until); }
  void destroyEvent(void* event, c10::DeviceIndex) const noexcept override {
    delete static_cast<Event*>(event);
  }
};

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  void init() const override {}
  c10::DeviceIndex deviceCount() const override { return 1; }
  c10::DeviceIndex getCurrentDevice() const override { return 0; }
  void setCurrentDevice(c10::DeviceIndex) const override {}
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex) const override { return 0; }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex) const override { return 0; }
  bool isPinnedPtr(const void* data) const override { return is_pinned(data); }
  c10::Allocator* getPinnedMemoryAllocator() const override { return pinned_allocator(); }
  c10::Device getDeviceFromPtr(void*) const override { return {kType, 0}; }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex) const override { return generator(); }
  at::Generator getNewGenerator(c10::DeviceIndex) const override {
    return at::make_generator<at::CPUGeneratorImpl>();
  }
};

}  // namespace

// The device draws from a generator that torch.manual_seed() does not seed.
const at::Generator& generator() {
  static const auto* const only =
      new at::Generator(at::make_generator<at::CPUGeneratorImpl>(/*seed=*/1));
  return *only;
}

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

const bool is_registered = [] {
  c10::SetAllocator(kType, device_allocator());
  static Hooks hooks;
  at::RegisterPrivateUse1HooksInterface(&hooks);
  return true;
}();

TORCH_LIBRARY(lockstep_stand_in, library) {
  library.def("seed(int seed) -> ()", [](int64_t seed) {
    at::Generator drawn = generator();
    drawn.set_current_seed(static_cast<uint64_t>(seed));
  });
  library.def("pin(int address, int bytes) -> ()", [](int64_t address, int64_t bytes) {
    // Python knows addresses as numbers. NOLINTNEXTLINE(performance-no-int-to-ptr)
    pin(reinterpret_cast<const void*>(address), static_cast<size_t>(bytes));
  });
  library.def("synchronize() -> ()", [] { wait_for(asked_for()); });
  library.def("waits() -> int", [] { return static_cast<int64_t>(waits()); });
}

}  // namespace lockstep::stand_in
