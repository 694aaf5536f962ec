#include "comm/environment/sysfs.h"

#include "comm/base/file.h"
#include "comm/base/limits.h"

namespace lockstep {

std::string_view without_end(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  return text;
}

std::optional<std::string> sysfs_line(const std::string& path) {
  const auto text = read_file(path, limits::kSystemFileBytes);
  if (!text.is_ok()) return std::nullopt;
  return std::string(without_end(*text));
}

// sysfs writes small letters.
std::string pci_directory(const std::string& sysfs, std::string_view pci) {
  std::string name;
  for (const char c : pci) {
    const bool is_upper = c >= 'A' && c <= 'F';
    if (!is_upper && std::string_view("0123456789abcdef:.").find(c) == std::string_view::npos)
      return {};
    name += is_upper ? static_cast<char>(c - 'A' + 'a') : c;
  }
  if (name.find(':') == std::string::npos || name.find("..") != std::string::npos) return {};
  return sysfs + "/bus/pci/devices/" + name;
}

}  // namespace lockstep
