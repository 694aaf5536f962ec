#include "deploy/cli/job/job_print.h"

#include <algorithm>
#include <cctype>

#include "comm/base/log.h"
#include "comm/run/job/predictions.h"
#include "deploy/cli/job/job_schema.h"
#include "deploy/cli/keys/job_list.h"
#include "deploy/cli/script/script_keys.h"

namespace lockstep {
namespace {

// Numbers, booleans and simple words stay plain; anything YAML might read otherwise is quoted.
std::string scalar(const std::string& text) {
  const auto is_plain = [](unsigned char c) {
    return std::isalnum(c) || c == '_' || c == '.' || c == '/' || c == '-' || c == '+';
  };
  const bool looks_null = text == "null" || text == "Null" || text == "NULL";
  if (!text.empty() && text[0] != '-' && !looks_null &&
      std::all_of(text.begin(), text.end(), is_plain))
    return text;
  return "\"" + json_escape(text) + "\"";
}

std::string yaml_value(const JobKey& row, const wire::JobSpec& job, size_t element = 0) {
  const std::vector<std::string> items = job_value(row, job, element);
  if (!is_list(row)) return scalar(items[0]);
  std::string out = "[";
  for (const std::string& item : items) out += (out.size() > 1 ? ", " : "") + scalar(item);
  return out + "]";
}

// Calls open(depth, name) for every group that begins before `key`, given the key before it.
template <typename Open>
size_t open_groups(std::string_view before, std::string_view key, Open open) {
  size_t depth = 0;
  bool same = true;
  for (size_t dot = key.find('.'); dot != std::string_view::npos; dot = key.find('.')) {
    const std::string_view name = key.substr(0, dot);
    same = same && before.substr(0, before.find('.')) == name &&
           before.find('.') != std::string_view::npos;
    if (!same) open(depth, name);
    if (same) before.remove_prefix(before.find('.') + 1);
    key.remove_prefix(dot + 1);
    ++depth;
  }
  return depth;
}

std::string last_word(std::string_view key) {
  return std::string(key.substr(key.rfind('.') + 1));
}

// A list of maps, each on a line of its own.
std::string yaml_list(std::string_view list, const wire::JobSpec& job) {
  const auto depth = static_cast<size_t>(std::count(list.begin(), list.end(), '.'));
  const std::string indent(2 * depth, ' ');
  const size_t elements = list_size(list, job);
  std::string out = indent + last_word(list) + ":" + (elements == 0 ? " []" : "") + "\n";
  for (size_t element = 0; element < elements; ++element) {
    std::string map;
    for (const JobKey& row : job_keys())
      if (list_of(row) == list)
        map +=
            (map.empty() ? "" : ", ") + last_word(row.key) + ": " + yaml_value(row, job, element);
    out += indent + "  - {" + map + "}\n";
  }
  return out;
}

}  // namespace

std::string job_yaml(const wire::JobSpec& job) {
  std::string out;
  std::string_view before;
  std::string_view list_before;
  const bool has_data = !job.data().train().path().empty();
  for (const JobKey& row : job_keys()) {
    if (is_script(job.model()) && !said_by_script(row.key, has_data).empty()) continue;
    if (!list_of(row).empty()) {
      if (list_of(row) != list_before) out += yaml_list(list_of(row), job);
      list_before = list_of(row);
      continue;
    }
    const size_t depth = open_groups(before, row.key, [&](size_t level, std::string_view name) {
      out += std::string(2 * level, ' ') + std::string(name) + ":\n";
    });
    out += std::string(2 * depth, ' ') + last_word(row.key) + ": " + yaml_value(row, job) + "\n";
    before = row.key;
  }
  return out;
}

}  // namespace lockstep
