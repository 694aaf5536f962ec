// Manifests as trees, and their text. Kubernetes wants strings where it says strings: "4" is one, 4
// is not, and `no` is a boolean to many readers. So every text is a string whatever it looks like.
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
using Entry = std::pair<std::string, Tree>;

Tree text(const std::string& value);
Tree number(uint64_t value);
Tree flag(bool value);
Tree map(const std::vector<Entry>& entries);  // in this order
Tree list(const std::vector<Tree>& items);
Tree texts(const std::vector<std::string>& items);

// One document each, separated by "---".
std::string to_yaml(const std::vector<Tree>& documents);

}  // namespace lockstep::k8s
