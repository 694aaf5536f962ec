#include "data/source/base/object_names.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "comm/base/limits.h"
#include "comm/base/text/lower_case.h"
#include "comm/run/job/data_formats.h"
#include "data/base/hidden_names.h"

namespace lockstep::source {
namespace {

constexpr size_t kComponentBytes = 255;  // of a file system

std::string shown(const std::string& name) {
  constexpr size_t kShown = 100;
  std::string text;
  for (const char c : name.substr(0, kShown))
    text += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  return "\"" + text + (name.size() > kShown ? "...\"" : "\"");
}

bool is_component(std::string_view part) {
  return !part.empty() && part != "." && part != ".." && part.size() <= kComponentBytes &&
         std::none_of(part.begin(), part.end(),
                      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

bool is_file_name(std::string_view name) {
  if (name.empty() || name.size() > limits::kSourceNameBytes) return false;
  for (;;) {
    const size_t slash = name.find('/');
    if (!is_component(name.substr(0, slash))) return false;
    if (slash == std::string_view::npos) return true;
    name.remove_prefix(slash + 1);
  }
}

std::string lower_leaf(const std::string& name) {
  return lower_case(name.substr(name.rfind('/') + 1));
}

Fetching by_name(const std::string& name) {
  const std::string leaf = lower_leaf(name);
  for (const NamedFormat& format : kNamedFormats)
    for (const std::string_view ending : format.ranged)
      if (!ending.empty() && leaf.ends_with(ending)) return Fetching::kRanges;
  // Nothing in it can be read by itself.
  if (leaf.ends_with(".gz")) return Fetching::kWhole;
  const bool is_told_by_head = std::any_of(
      std::begin(kNamedFormats), std::end(kNamedFormats), [&](const NamedFormat& format) {
        return format.is_told_by_head != nullptr && format.is_told_by_head(leaf);
      });
  return is_told_by_head ? Fetching::kHeadFirst : Fetching::kWhole;
}

bool describes_others(const std::string& name) {
  const std::string leaf = lower_leaf(name);
  return std::any_of(std::begin(kNamedFormats), std::end(kNamedFormats),
                     [&](const NamedFormat& format) { return leaf == format.described_by; });
}

}  // namespace

Status check_names(const std::vector<ObjectInfo>& objects) {
  std::set<std::string_view> names;
  for (const ObjectInfo& object : objects) {
    if (!is_file_name(object.name))
      return {Code::kBadData, "the source has an object with the name " + shown(object.name) +
                                  ", which a file cannot have; rename the object"};
    if (!names.insert(object.name).second)
      return {Code::kBadData, "the source names " + shown(object.name) + " twice"};
  }
  for (const std::string_view name : names) {
    // If a name begins with "a/", "a" is a directory.
    for (size_t slash = name.find('/'); slash != std::string_view::npos;
         slash = name.find('/', slash + 1)) {
      if (names.count(name.substr(0, slash)) == 0) continue;
      return {Code::kBadData,
              "the source has an object " + shown(std::string(name.substr(0, slash))) +
                  " and others below it, but a file cannot be a directory; rename the object"};
    }
  }
  return Status::ok();
}

bool is_manifest(std::string_view name) {
  return name.substr(name.rfind('/') + 1) == kManifestName;
}

std::vector<Fetching> fetching_of(const std::vector<ObjectInfo>& objects) {
  std::vector<Fetching> all;
  // One object alone is what was asked for.
  const bool is_one = objects.size() == 1;
  for (const ObjectInfo& object : objects) {
    const bool is_left = !is_one && data::lies_hidden(object.name);
    all.push_back(is_left ? Fetching::kLeft : by_name(object.name));
  }
  const bool is_encoded = std::any_of(all.begin(), all.end(), [](Fetching f) {
    return f == Fetching::kRanges || f == Fetching::kHeadFirst;
  });
  const auto is_data = [&](const std::string& name) {
    return is_encoded ? describes_others(name) : is_one || !is_manifest(name);
  };
  for (size_t i = 0; i < objects.size(); ++i)
    if (all[i] == Fetching::kWhole && !is_data(objects[i].name)) all[i] = Fetching::kLeft;
  return all;
}

}  // namespace lockstep::source
