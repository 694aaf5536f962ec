// Answers count_gpus()'s calls of NVIDIA's driver from the environment.
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

int number(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? 0 : std::atoi(text);
}

}  // namespace

extern "C" int cuInit(unsigned int) {
  return number("FAKE_DRIVER_INIT_ERROR");
}

extern "C" int cuDeviceGetCount(int* devices) {
  *devices = number("FAKE_DRIVER_DEVICES");
  return 0;
}

// Those after one that is lost have moved up.
extern "C" int cuDeviceGet(int* device, int index) {
  const bool has_moved =
      std::getenv("FAKE_DRIVER_LOST") != nullptr && index >= number("FAKE_DRIVER_LOST");
  *device = has_moved ? index + 1 : index;
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
