#include "comm/base/gpu/visible_devices.h"

#include <algorithm>

#include "comm/base/text/printable.h"

namespace lockstep {
namespace {

constexpr std::string_view kBlanks = " \t";

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return "";
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

bool is_slice(std::string_view name) {
  return name.starts_with("MIG-");
}

bool is_name(std::string_view entry) {
  if (is_slice(entry) || entry.starts_with("GPU-")) return entry.size() > 4;
  return !entry.empty() &&
         std::all_of(entry.begin(), entry.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

VisibleDevices read_visible_devices(std::string_view value) {
  VisibleDevices devices;
  for (bool goes_on = true; goes_on;) {
    const size_t comma = value.find(',');
    const std::string_view entry = trimmed(value.substr(0, comma));
    goes_on = comma != std::string_view::npos;
    if (goes_on) value.remove_prefix(comma + 1);
    if (!is_name(entry)) break;
    if (std::find(devices.seen.begin(), devices.seen.end(), entry) != devices.seen.end()) {
      devices.has_twice = true;
      continue;
    }
    if (is_slice(entry) && !devices.seen.empty()) break;
    devices.seen.emplace_back(entry);
    if (is_slice(entry)) break;
  }
  return devices;
}

std::string why_none_visible(const char* value) {
  if (value == nullptr)
    return "the driver shows none, and CUDA_VISIBLE_DEVICES is not set; look for them with "
           "nvidia-smi -L";
  const std::string said = "CUDA_VISIBLE_DEVICES is \"" + printable_line(value) + "\"";
  if (trimmed(value).empty()) return said + ", which hides all GPUs; unset it";
  const VisibleDevices devices = read_visible_devices(value);
  if (devices.seen.empty())
    return said +
           ", which names no GPU (a batch system writes such a word when it gives none): ask for "
           "GPUs, or unset it";
  return said + (devices.has_twice ? ", which names a GPU twice" : "") +
         ", and the driver shows no GPU of this list; compare it with nvidia-smi -L";
}

}  // namespace lockstep
