#include "worker/script/script_device.h"

#include <algorithm>

#include "worker/device/device_memory.h"
#include "worker/device/gradient_hash.h"
#include "worker/optim/grad_norm.h"

namespace lockstep {
namespace {

constexpr uint64_t kZeros = uint64_t{1} << 18;  // floats that are cleared at a time

}  // namespace

ScriptDevice::ScriptDevice(DeviceModule& module, const FlatLayout& layout, bool sums_in_windows)
    : module_(module),
      layout_(layout),
      sums_in_windows_(sums_in_windows),
      gradients_(module, layout),
      reader_(module, layout.buffer.statistics * sizeof(float)) {}

Result<std::unique_ptr<ScriptDevice>> ScriptDevice::create(DeviceModule& module,
                                                           const FlatLayout& layout,
                                                           bool sums_in_windows, bool has_checks) {
  std::unique_ptr<ScriptDevice> device(new ScriptDevice(module, layout, sums_in_windows));
  LOCKSTEP_RETURN_IF_ERROR(device->gradients_.regions().reserve(1));
  LOCKSTEP_RETURN_IF_ERROR(device->reader_.reserve());
  float* zeros = nullptr;
  LOCKSTEP_RETURN_IF_ERROR(allocate(module, &zeros, kZeros));
  device->zeros_ = zeros;
  if (has_checks)
    LOCKSTEP_RETURN_IF_ERROR(allocate(module, &device->private_, layout.buffer.statistics));
  return device;
}

Result<GradientPath> ScriptDevice::path(const GenerationView& view, uint32_t regions) {
  GradientPath path{.transfer = &gradients_, .sums = nullptr, .devices = view.devices};
  if (view.collective->world_size() > 1 && view.devices == nullptr) return path;
  LOCKSTEP_RETURN_IF_ERROR(gradients_.counter().reserve());
  LOCKSTEP_RETURN_IF_ERROR(gradients_.regions().reserve(regions));
  path.sums = &gradients_;
  return path;
}

Result<GradientBuffer*> ScriptDevice::buffer(uint32_t regions) {
  LOCKSTEP_RETURN_IF_ERROR(gradients_.regions().reserve(regions));
  LOCKSTEP_RETURN_IF_ERROR(gradients_.regions().reserve_result(sums_in_windows_));
  return static_cast<GradientBuffer*>(&gradients_.regions());
}

Result<float*> ScriptDevice::begin_slot(float* region, bool is_private) {
  if (is_private) {
    gradients_.begin_private_slot();
    return private_;
  }
  LOCKSTEP_RETURN_IF_ERROR(gradients_.begin_slot());
  return region != nullptr ? region : gradients_.partial(0);
}

// begin_slot() holds kCompute as writes_on() holds a stream.
Status ScriptDevice::clear(float* begin, uint64_t elements) {
  for (uint64_t done = 0; done < elements;) {
    const uint64_t now = std::min(elements - done, kZeros);
    LOCKSTEP_RETURN_IF_ERROR(
        module_.copy(DeviceLane::kCompute, begin + done, zeros_, now * sizeof(float)));
    done += now;
  }
  return Status::ok();
}

Result<uint64_t> ScriptDevice::hash(const float* place) {
  LOCKSTEP_RETURN_IF_ERROR(gradients_.follow_streams(DeviceLane::kCompute));
  return hash_gradients(reader_, layout_, place);
}

Result<bool> ScriptDevice::are_finite(const float* sums) {
  bool are_finite = true;
  const DeviceReader::Range all{sums, layout_.buffer.statistics * sizeof(float)};
  LOCKSTEP_RETURN_IF_ERROR(reader_.read({&all, 1}, [&](const std::byte* piece, size_t bytes) {
    are_finite =
        are_finite && all_finite(reinterpret_cast<const float*>(piece), bytes / sizeof(float));
  }));
  return are_finite;
}

}  // namespace lockstep
