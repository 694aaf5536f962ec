#include "data/open/evidence.h"

#include <algorithm>

#include "comm/base/check.h"

namespace lockstep::data {
namespace {

constexpr uint64_t kClearly = 2;  // times as many bytes

bool is_any_of(const std::string& format, std::initializer_list<std::string_view> formats) {
  return std::find(formats.begin(), formats.end(), format) != formats.end();
}

// True for directories of images.
bool is_tree(const std::string& format) {
  return is_any_of(format, {"image_folder", "image_mask"});
}

// Rule 2.
std::vector<Candidate> without_descriptions(std::vector<Candidate> candidates) {
  const bool has_main = std::ranges::any_of(
      candidates, [](const Candidate& c) { return c.probe->has_tables_beside; });
  const bool has_tokens =
      std::ranges::any_of(candidates, [](const Candidate& c) { return c.format == "tokens"; });
  std::erase_if(candidates, [&](const Candidate& c) {
    return (has_main && c.format == "csv") || (has_tokens && c.format == "text");
  });
  return candidates;
}

struct Weighed {
  std::string format;
  Evidence evidence;
};

std::string shown_candidate(const Weighed& one) {
  return one.format + " (" + one.evidence.example + ", " + std::to_string(one.evidence.bytes) +
         " bytes)";
}

Status is_open(const std::string& path, const Weighed& a, const Weighed& b) {
  return {Code::kUsage,
          "data directory " + path + " may be of format " + shown_candidate(a) + " or " +
              shown_candidate(b) +
              "; set data.train.format to one of them, or move the files of the other "
              "to another directory"};
}

}  // namespace

Result<std::string> strongest(const Listing& directory, const std::vector<Candidate>& all) {
  LOCKSTEP_CHECK(!all.empty(), "there is a candidate");
  if (all.size() == 1 || all.front().probe->weigh == nullptr) return all.front().format;
  const std::vector<Candidate> candidates = without_descriptions(all);
  if (candidates.size() == 1) return candidates.front().format;
  std::vector<Weighed> weighed;
  for (const Candidate& one : candidates)
    weighed.push_back(
        {one.format, one.probe->weigh == nullptr ? Evidence() : one.probe->weigh(directory)});
  const Weighed& first = weighed.front();
  const Weighed& most = *std::max_element(
      weighed.begin(), weighed.end(),
      [](const Weighed& a, const Weighed& b) { return a.evidence.bytes < b.evidence.bytes; });
  if (&most == &first) {
    // Rule 4, for text that has a little more.
    const auto images = std::find_if(weighed.begin(), weighed.end(),
                                     [](const Weighed& w) { return is_tree(w.format); });
    const bool is_weak = is_any_of(first.format, {"text", "csv"});
    if (images != weighed.end() && is_weak &&
        first.evidence.bytes / kClearly < images->evidence.bytes)
      return images->format;
    return first.format;
  }
  const bool is_clear = first.evidence.bytes <= most.evidence.bytes / kClearly ||
                        (is_tree(most.format) && first.format == "text");
  if (is_clear) return most.format;
  return is_open(directory.path, first, most);
}

}  // namespace lockstep::data
