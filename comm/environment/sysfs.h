// Reads what the kernel says of the devices of this machine.
//
// Thread-safety: free functions; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lockstep {

// Without newlines and blanks at its end.
std::string_view without_end(std::string_view text);

// The content of a file of one line, without its end; nothing if it cannot be read.
std::optional<std::string> sysfs_line(const std::string& path);

// The directory of a PCI device ("0000:3B:00.0", in letters of either case) below `sysfs`, which is
// mostly "/sys". Empty if `pci` is no name of a device, and therefore no part of a path.
std::string pci_directory(const std::string& sysfs, std::string_view pci);

}  // namespace lockstep
