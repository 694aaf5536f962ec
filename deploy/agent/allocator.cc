#include "deploy/agent/allocator.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

namespace lockstep {
namespace {

struct Allocator {
  std::string_view name;                  // of cluster.malloc
  std::array<std::string_view, 2> files;  // the first that is there; may be the same
  std::string_view package;               // of Debian and Ubuntu
};

constexpr Allocator kAllocators[] = {
    {"jemalloc", {"libjemalloc.so.2", "libjemalloc.so.2"}, "libjemalloc2"},
    {"tcmalloc", {"libtcmalloc_minimal.so.4", "libtcmalloc.so.4"}, "libtcmalloc-minimal4"},
};

// The architecture's part of the path in Debian's library directories.
#if defined(__aarch64__)
constexpr char kTriplet[] = "aarch64-linux-gnu";
#else
constexpr char kTriplet[] = "x86_64-linux-gnu";
#endif

// LD_PRELOAD is a list with colons or blanks between, which know no quotes.
bool fits_in_a_list(const std::string& directory) {
  return directory.starts_with('/') && directory.find_first_of(": \t\n") == std::string::npos;
}

std::string find(const Allocator& allocator, const std::vector<std::string>& directories) {
  for (const std::string& directory : directories)
    for (const std::string_view file : allocator.files) {
      const std::string path = directory + "/" + std::string(file);
      if (::access(path.c_str(), R_OK) == 0) return path;
    }
  return "";
}

}  // namespace

std::vector<std::string> library_directories() {
  std::vector<std::string> directories;
  const auto add = [&](const std::string& directory) {
    if (fits_in_a_list(directory)) directories.push_back(directory);
  };
  const char* set = std::getenv("LD_LIBRARY_PATH");
  std::string_view rest = set == nullptr ? "" : set;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(':'), rest.size());
    add(std::string(rest.substr(0, end)));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  for (const std::string root : {"/usr/local", "/usr", ""})
    for (const std::string& below :
         {"/lib/" + std::string(kTriplet), std::string("/lib64"), std::string("/lib")})
      add(root + below);
  return directories;
}

Result<std::string> allocator_library(std::string_view name,
                                      const std::vector<std::string>& directories) {
  for (const Allocator& allocator : kAllocators) {
    if (allocator.name != name) continue;
    std::string path = find(allocator, directories);
    if (!path.empty()) return path;
    return Status(Code::kConfig, "cluster.malloc is " + std::string(name) + ", but " +
                                     std::string(allocator.files.front()) +
                                     " is not on this machine; install it (Debian, Ubuntu: apt "
                                     "install " +
                                     std::string(allocator.package) +
                                     "), or set cluster.malloc=system");
  }
  return std::string();
}

std::vector<std::string> installed_allocators(const std::vector<std::string>& directories) {
  std::vector<std::string> names;
  for (const Allocator& allocator : kAllocators)
    if (!find(allocator, directories).empty()) names.emplace_back(allocator.name);
  return names;
}

}  // namespace lockstep
