#include "comm/collectives/nccl/adapter_links.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <iterator>
#include <utility>
#include <vector>

#include "comm/environment/sysfs.h"

namespace lockstep::nccl {
namespace {

namespace fs = std::filesystem;

std::optional<uint64_t> number_of(const fs::path& file) {
  const std::string text = sysfs_line(file).value_or("");
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;  // an empty text is no number either
  return number;
}

std::vector<std::string> names_in(const fs::path& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error))
    names.push_back(it->path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

// How many bridges two devices have in common.
ptrdiff_t common_way(const fs::path& a, const fs::path& b) {
  std::error_code error;
  const fs::path from = fs::canonical(a, error);
  if (error) return -1;
  const fs::path to = fs::canonical(b, error);
  if (error) return -1;
  return std::distance(from.begin(),
                       std::mismatch(from.begin(), from.end(), to.begin(), to.end()).first);
}

}  // namespace

AdapterLinks::AdapterLinks(std::string pci, std::string sysfs)
    : pci_(std::move(pci)), sysfs_(std::move(sysfs)) {}

std::map<AdapterLinks::Port, AdapterLinks::Seen> AdapterLinks::look() const {
  std::map<Port, Seen> seen;
  const fs::path adapters = fs::path(sysfs_) / "class/infiniband";
  for (const std::string& adapter : names_in(adapters))
    for (const std::string& port : names_in(adapters / adapter / "ports")) {
      const fs::path directory = adapters / adapter / "ports" / port;
      seen[{adapter, port}] = {sysfs_line(directory / "state").value_or(""),
                               number_of(directory / "counters/link_downed")};
    }
  return seen;
}

void AdapterLinks::begin() {
  before_ = look();
  for (const auto& [port, seen] : before_)
    if (seen.is_active()) once_active_.insert(port);
}

std::optional<AdapterTrouble> AdapterLinks::trouble() const {
  std::optional<AdapterTrouble> found;
  std::optional<std::set<std::string>> near;
  for (const auto& [port, now] : look()) {
    if (!once_active_.contains(port) || (found && found->is_near)) continue;
    const auto before = before_.find(port);
    const std::string name = "port " + port.second + " of " + port.first;
    std::string what;
    if (!now.is_active() && !now.state.empty())
      what = name + " is not active (" + now.state + ")";
    else if (before != before_.end() && before->second.times_down &&
             now.times_down > before->second.times_down)
      what = name + " has lost its link";
    if (what.empty()) continue;
    if (!near) near = near_adapters();
    const bool is_near = near->contains(port.first);
    if (!found || is_near) found = {std::move(what), is_near};
  }
  return found;
}

std::set<std::string> AdapterLinks::near_adapters() const {
  std::set<std::string> near;
  const std::string gpu = pci_directory(sysfs_, pci_);
  const fs::path adapters = fs::path(sysfs_) / "class/infiniband";
  ptrdiff_t longest = 0;
  for (const std::string& adapter : names_in(gpu.empty() ? fs::path() : adapters)) {
    const ptrdiff_t way = common_way(gpu, adapters / adapter / "device");
    if (way > longest) near.clear();
    longest = std::max(longest, way);
    if (way == longest && way > 0) near.insert(adapter);
  }
  return near;
}

}  // namespace lockstep::nccl
