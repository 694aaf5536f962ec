// The memory of the stand-in device, and what has not arrived yet in it.
//
// A tensor's address lies in pages that no process may touch, so that whoever reads a device tensor
// on the host ends with a segmentation fault; its values lie in the shadow of these pages, which
// only kernels know.
//
// A copy that need not be waited for (non_blocking, from or to pinned memory) comes late:
//   to the host    what the device had when the copy was asked for, when the host waits for it;
//   until
//                  then the host has other bytes there
//   from the host  what the host has when the device next computes on the same stream, or waits for
//   an
//                  event of that one
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
// As the driver's function: memory of others that is pinned from now on.
void pin(const void* data, size_t bytes);

// The values of what lies at this device address; null: it is none.
void* shadow_of(const void* device_address);

// The stream of this thread. 0: the one that computes.
int64_t exchange_stream(int64_t stream);
int64_t current_stream();

enum class Direction { kToHost, kToDevice };
// On the current stream, in order. Holds what `arrive` holds until then.
void arrives_late(Direction direction, std::function<void()> arrive);

// Before a kernel: what was sent to the device on the current stream is there. What was sent to the
// host stays away.
void arrive_on_device();
// How many copies were asked for so far; an event is such a number.
uint64_t asked_for();
bool has_arrived(uint64_t until);
// So much time has passed that these are there.
void arrive(uint64_t until);
// The host waits for these.
void wait_for(uint64_t until);
// How often the host has waited.
uint64_t waits();

}  // namespace lockstep::stand_in
