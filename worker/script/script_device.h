// A script's device, where gradients leave for their sums without the host's memory, or for the
// host's sums by copies of ours. Python writes a slot's gradients into a place of the device that
// it is given, on streams of its own, and reads a step's sums there:
//
//   hook ─ writes_on(stream) ─ (Python writes) ─ bucket leaves: kGradients follows the streams
//   APPLY ─ reads_on(stream) ─ (Python reads) ─ has_read(stream): later sums wait for the stream
//
// INVARIANTS
//  V1 Nothing is read of a place before the streams have come that far that wrote it, and nothing
//     is written there before what read it of the slot before is done (device_gradients.h, A2).
//  V2 What reads a step's sums waits for them, and the next step's sums wait for it, on the device.
//  V3 A slot that is computed a second time waits for no sum of its step: a peer may have died, and
//     the sum ends only with the next generation.
//
// Errors: as device_module.h says.
//
// Thread-safety: writes_on() on the thread on which parameters are announced; everything else on
// the training thread, or on Python's while it has the turn (desk.h).
#pragma once

#include <cstdint>
#include <memory>

#include "comm/base/status.h"
#include "worker/cuda/device_module.h"
#include "worker/device/device_gradients.h"
#include "worker/device/device_marks.h"
#include "worker/device/device_reader.h"
#include "worker/engine/flat_layout.h"
#include "worker/engine/generation_view.h"
#include "worker/engine/step_reducer.h"

namespace lockstep {

class ScriptDevice {
 public:
  // `module` and `layout` outlive the device. `sums_in_windows`: as
  // DeviceRegions::reserve_result(). `has_checks`: some slots are computed a second time, to
  // compare.
  static Result<std::unique_ptr<ScriptDevice>> create(DeviceModule& module,
                                                      const FlatLayout& layout,
                                                      bool sums_in_windows, bool has_checks);

  // How gradients go in this generation. `regions`: of the host's buffer.
  Result<GradientPath> path(const GenerationView& view, uint32_t regions);
  // The memory that the devices of a generation sum in, and its end (Engine::device_buffer()).
  Result<GradientBuffer*> buffer(uint32_t regions);
  void drop_buffer() { gradients_.regions().drop(); }

  // Begins a slot. Returns where Python writes it: gradients and statistics, in the layout of a
  // region. `region`: that the step has for it; null: the sums are the host's. `is_private`: the
  // slot goes nowhere. REQUIRES: `has_checks` for such a one.
  Result<float*> begin_slot(float* region, bool is_private);
  Status writes_on(void* stream) { return gradients_.writes_on(stream); }
  // Writes zeros to a part of the slot's place, in order with its other writes.
  Status clear(float* begin, uint64_t elements);
  // As hash_gradients(), of the slot that was begun last.
  Result<uint64_t> hash(const float* place);

  // Whether sums of the device are all numbers.
  Result<bool> are_finite(const float* sums);
  // Before and after work on `stream` that reads the step's sums. kCompute writes nothing before
  // begin_slot(), which holds it for kGradients.
  Status reads_on(void* stream) { return module_.lead(stream, kGradientsReached); }
  Status has_read(void* stream) { return module_.follow(DeviceLane::kGradients, stream); }
  uint32_t finished_buckets() const { return gradients_.counter().finished(); }

 private:
  ScriptDevice(DeviceModule& module, const FlatLayout& layout, bool sums_in_windows);

  DeviceModule& module_;
  const FlatLayout& layout_;
  const bool sums_in_windows_;
  DeviceGradients gradients_;
  DeviceReader reader_;
  const float* zeros_ = nullptr;
  float* private_ = nullptr;  // for slots that go nowhere
};

}  // namespace lockstep
