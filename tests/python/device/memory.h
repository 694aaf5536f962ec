// The memory of the stand-in device, and the copies that have not arrived yet.
//
// A tensor's address lies in pages that no process may touch, so that a host program that reads a
// device tensor ends with a segmentation fault. Its values lie in the shadow of these pages, which
// only kernels know.
//
// A copy that need not be waited for (non_blocking, from or to pinned memory) comes late:
//   to the host    arrives when the host waits for it, with the values that the device had at the
//                  call; until then the host has other bytes there
//   from the host  arrives when the device next computes on the same stream, or waits for an event
//                  of that stream, with the values that the host has then
//
// Thread-safety: any thread. Kernels of two threads do not run at once.
#pragma once

#include <c10/core/Allocator.h>

#include <cstddef>
#include <cstdint>
#include <functional>

namespace lockstep::stand_in {

c10::Allocator* device_allocator();
c10::Allocator* pinned_allocator();

bool is_pinned(const void* data);
// Pins memory that another allocator owns, as the driver's function does.
void pin(const void* data, size_t bytes);

// The values at this device address, or null if it is not a device address.
void* shadow_of(const void* device_address);

// The stream of this thread. Stream 0 computes.
int64_t exchange_stream(int64_t stream);
int64_t current_stream();

enum class Direction { kToHost, kToDevice };
// Queues `arrive` on the current stream, in order, and keeps its captures alive until it runs.
void arrives_late(Direction direction, std::function<void()> arrive);

// Called before a kernel: copies to the device on the current stream arrive. Copies to the host do
// not.
void arrive_on_device();
// The number of copies asked for so far; an event is such a number.
uint64_t asked_for();
bool has_arrived(uint64_t until);
// Time passes until the copies up to `until` have arrived.
void arrive(uint64_t until);
// The host waits for the copies up to `until`.
void wait_for(uint64_t until);
// The number of the host's waits.
uint64_t waits();

}  // namespace lockstep::stand_in
