// Answers count_gpus()'s calls of NVIDIA's driver from the environment.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

namespace {

int number(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? 0 : std::atoi(text);
}

// The devices that $CUDA_VISIBLE_DEVICES shows, by number or as "GPU-" and a UUID. Unset, or empty
// as where torch is to find none: all of them.
std::vector<int> visible() {
  const int all = number("FAKE_DRIVER_DEVICES");
  std::vector<int> shown;
  const char* const said = std::getenv("CUDA_VISIBLE_DEVICES");
  if (said == nullptr || *said == '\0') {
    for (int device = 0; device < all; ++device) shown.push_back(device);
    return shown;
  }
  std::istringstream names(said);
  for (std::string name; std::getline(names, name, ',');) {
    const bool is_uuid = name.rfind("GPU-", 0) == 0;
    const long of =
        is_uuid ? std::strtol(name.substr(4, 2).c_str(), nullptr, 16) - 1 : std::atol(name.c_str());
    if (of < 0 || of >= all) break;  // nor any after it
    shown.push_back(static_cast<int>(of));
  }
  return shown;
}

}  // namespace

extern "C" int cuInit(unsigned int) {
  return number("FAKE_DRIVER_INIT_ERROR");
}

extern "C" int cuDeviceGetCount(int* devices) {
  *devices = static_cast<int>(visible().size());
  return 0;
}

// Those after one that is lost have moved up.
extern "C" int cuDeviceGet(int* device, int index) {
  const bool has_moved =
      std::getenv("FAKE_DRIVER_LOST") != nullptr && index >= number("FAKE_DRIVER_LOST");
  const std::vector<int> shown = visible();
  if (static_cast<size_t>(index) >= shown.size()) return 101;  // CUDA_ERROR_INVALID_DEVICE
  const int at = shown[static_cast<size_t>(index)];
  *device = has_moved ? at + 1 : at;
  return 0;
}

extern "C" int cuDeviceGetPCIBusId(char* text, int size, int device) {
  std::snprintf(text, static_cast<size_t>(size), "0000:%02x:00.0", 0x30 + device);
  return 0;
}

// Gives the whole GPU's UUID also for its slices (MIG).
extern "C" int cuDeviceGetUuid(unsigned char* uuid, int device) {
  std::memset(uuid, number("FAKE_DRIVER_MIG") != 0 ? 0xaa : device + 1, 16);
  return 0;
}

extern "C" int cuDeviceGetUuid_v2(unsigned char* uuid, int device) {
  std::memset(uuid, device + 1, 16);
  return 0;
}
