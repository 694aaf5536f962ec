#include "deploy/cli/job/yaml_slips.h"

#include <algorithm>
#include <vector>

#include "comm/base/log.h"
#include "deploy/cli/keys/job_table.h"

namespace lockstep {
namespace {

constexpr std::string_view kBlanks = " \t";

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// A part of a key: "train", or "epochs".
bool is_key_word(std::string_view word) {
  if (word.empty()) return false;
  for (const JobKey& row : job_keys()) {
    std::string_view rest = row.key;
    for (size_t dot = rest.find('.'); dot != std::string_view::npos; dot = rest.find('.')) {
      if (rest.substr(0, dot) == word) return true;
      rest.remove_prefix(dot + 1);
    }
    if (rest == word) return true;
  }
  return false;
}

bool is_tab_indented(std::string_view line) {
  const size_t text = line.find_first_not_of(kBlanks);
  return text != std::string_view::npos && line[text] != '#' &&
         line.substr(0, text).find('\t') != std::string_view::npos;
}

}  // namespace

std::string colon_slip(std::string_view line) {
  const size_t begin = std::min(line.find_first_not_of(kBlanks), line.size());
  std::string_view text = line.substr(begin);
  text = text.substr(0, std::min(text.find(" #"), text.size()));
  text = text.substr(0, text.find_last_not_of(" \t\r") + 1);
  const size_t end = std::min(text.find_first_of(" \t:"), text.size());
  const std::string word(text.substr(0, end));
  if (!is_key_word(word)) return "";
  const std::string_view rest = text.substr(end);
  if (rest.size() > 1 && rest[0] == ':' && kBlanks.find(rest[1]) == std::string_view::npos)
    return "there is no blank after the colon; write \"" + word + ": " +
           json_escape(rest.substr(1, 40)) + "\"";
  if (rest.find(':') != std::string_view::npos) return "";
  const size_t value = rest.find_first_not_of(kBlanks);
  return "there is no colon after \"" + word + "\"; write \"" + word + ":" +
         (value == std::string_view::npos ? "" : " " + json_escape(rest.substr(value, 40))) + "\"";
}

std::optional<YamlSlip> find_yaml_slip(std::string_view text, size_t line) {
  const std::vector<std::string_view> lines = lines_of(text);
  for (size_t i = 0; i < lines.size(); ++i)
    if (is_tab_indented(lines[i]))
      return YamlSlip{i + 1, "the line begins with a tab; indent it with blanks, as YAML wants it"};
  for (size_t i = 0; i < std::min(lines.size(), line + 1); ++i)
    if (std::string what = colon_slip(lines[i]); !what.empty()) return YamlSlip{i + 1, what};
  return std::nullopt;
}

}  // namespace lockstep
