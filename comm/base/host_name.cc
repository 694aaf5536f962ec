#include "comm/base/host_name.h"

#include <unistd.h>

#include "comm/base/file.h"

namespace lockstep {

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 && name[0] != '\0' ? name : "localhost";
}

std::string boot_id() {
  auto text = read_file("/proc/sys/kernel/random/boot_id", 128);
  if (!text.is_ok()) return "";
  while (!text->empty() && text->back() == '\n') text->pop_back();
  return *text;
}

std::string machine_id() {
  char space[64] = {};
  const std::string boot = boot_id();
  if (boot.empty() || ::readlink("/proc/self/ns/pid", space, sizeof space - 1) <= 0) return "";
  return boot + "/" + space;
}

}  // namespace lockstep
