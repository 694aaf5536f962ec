// Manifests as trees, and their text. Where Kubernetes wants a string, "4" is one and 4 is not, and
// many readers take `no` for a boolean. So the text quotes every string.
//
// Thread-safety: values and free functions.
#pragma once

#include <yaml-cpp/yaml.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::k8s {

using Tree = YAML::Node;
using MapEntry = std::pair<std::string, Tree>;

Tree text(const std::string& value);
Tree number(uint64_t value);
Tree flag(bool value);
Tree map(const std::vector<MapEntry>& entries);  // in this order
Tree list(const std::vector<Tree>& items);
Tree texts(const std::vector<std::string>& items);

// One document each, separated by "---".
std::string to_yaml(const std::vector<Tree>& documents);

}  // namespace lockstep::k8s
