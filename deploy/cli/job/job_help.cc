#include "deploy/cli/job/job_help.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <vector>

#include "comm/base/text/nearest.h"
#include "comm/run/job/job_fields.h"
#include "deploy/cli/keys/job_table.h"

namespace lockstep {
namespace {

constexpr size_t kColumns = 100;
constexpr size_t kKeyColumn = 34;  // of the default
constexpr size_t kMeaningColumn = 45;

// Keys that stand together, because they belong to the same models or optimizers.
struct Group {
  std::string_view under;  // empty: of all
  std::vector<const JobKey*> rows;
};

// In the order of their first keys. The group that belongs to all comes first.
std::vector<Group> groups_of(const std::string& section) {
  std::vector<Group> groups = {Group{}};
  for (const JobKey& row : job_keys()) {
    if (wire::section_of(std::string(row.key)) != section) continue;
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const Group& g) { return g.under == row.under; });
    if (group == groups.end()) group = groups.insert(groups.end(), Group{row.under, {}});
    group->rows.push_back(&row);
  }
  return groups;
}

std::string padded(std::string text, size_t width) {
  text.resize(std::max(text.size() + 1, width), ' ');
  return text;
}

// `text` after `first`, with every further line indented so that it begins where `first` ends.
std::string wrapped(std::string first, std::string_view text) {
  const size_t indent = first.size();
  std::string out;
  std::string line = std::move(first);
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    if (line.size() > indent && line.size() + 1 + word.size() > kColumns) {
      out += line + "\n";
      line.assign(indent, ' ');
    }
    if (line.size() > indent) line += ' ';
    line += word;
  }
  return out + line + "\n";
}

std::string shown_default(const JobKey& row) {
  if (!row.by_machine.empty()) return std::string(row.by_machine);
  return row.default_text.empty() ? "-" : std::string(row.default_text);
}

std::string key_lines(const JobKey& row) {
  const std::string first =
      padded(padded("  " + std::string(row.key), kKeyColumn) + shown_default(row), kMeaningColumn);
  return wrapped(first, std::string(row.meaning) + (row.identity ? " [id]" : ""));
}

std::string section_lines(const wire::JobSection& section) {
  std::string out = section.name + ": " + section.about + "\n";
  for (const Group& group : groups_of(section.name)) {
    if (!group.under.empty()) out += " " + std::string(group.under) + ":\n";
    for (const JobKey* row : group.rows) out += key_lines(*row);
  }
  return out;
}

Status no_section(const std::string& section) {
  std::vector<std::string_view> names = {"all"};
  for (const wire::JobSection& s : wire::job_sections()) names.push_back(s.name);
  return Status(Code::kUsage, "\"" + section + "\" is not a section of the job file; use " +
                                  join_names(names) + did_you_mean(section, names));
}

// "65,536", "2^100".
std::string number(double value) {
  constexpr double kLargestInFull = 1e15;
  if (value >= kLargestInFull) return "2^" + std::to_string(std::ilogb(value));
  std::string text = std::to_string(static_cast<uint64_t>(value));  // bounds are whole
  for (size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, ",");
  return text;
}

bool is_bounded(const NumberRange& range) {
  constexpr double kMostThatAreCounted = 1e15;
  return std::isfinite(range.max) &&
         (range.max < kMostThatAreCounted || range.max > static_cast<double>(UINT64_MAX));
}

std::string range_cell(const JobKey& row) {
  if (!std::isfinite(row.range.min)) return "";
  const std::string low = number(row.range.min);
  const std::string unit = row.unit.empty() ? "" : " " + std::string(row.unit);
  if (!is_bounded(row.range)) return (row.range.min_exclusive ? "> " : "≥ ") + low + unit;
  return (row.range.min_exclusive ? "> " : "") + low +
         (row.range.max_exclusive ? " to < " : " to ") + number(row.range.max) + unit;
}

std::string code(std::string_view text) {
  return "`" + std::string(text) + "`";
}

std::string values_cell(const JobKey& row) {
  std::string cell = range_cell(row);
  std::vector<std::string_view> names(row.names.begin(), row.names.end());
  if (!row.zero.empty()) names.push_back(row.zero);
  for (const std::string_view name : names) cell += (cell.empty() ? "" : ", ") + code(name);
  return cell;
}

std::string meaning_cell(std::string_view meaning) {
  std::string cell;
  for (const char c : meaning) {
    if (c == '*' || c == '|') cell += '\\';
    cell += c;
  }
  return cell;
}

std::string table_row(const JobKey& row) {
  const std::string value = row.required()             ? "required"
                            : !row.by_machine.empty()  ? std::string(row.by_machine)
                            : row.default_text.empty() ? "–"
                                                       : code(row.default_text);
  return "| " + code(row.key) + (row.identity ? " (id)" : "") + " | " + value + " | " +
         values_cell(row) + " | " + meaning_cell(row.meaning) + " |\n";
}

std::string section_table(const std::string& section) {
  std::string out = "| key | default | values | meaning |\n|---|---|---|---|\n";
  for (const Group& group : groups_of(section)) {
    if (!group.under.empty()) out += "| **" + std::string(group.under) + "** | | | |\n";
    for (const JobKey* row : group.rows) out += table_row(*row);
  }
  return out;
}

// The values of a key, where a table of the code says what they are.
std::string values_table(const JobKey& row) {
  std::string out = "| " + code(row.key) + " | what it is |\n|---|---|\n";
  for (const KeyValue& value : row.values)
    out += "| " + code(value.name) + " | " + meaning_cell(value.about) + " |\n";
  return out;
}

constexpr char kIntroduction[] =
    "A job file is YAML, and a dot in a key is one level of nesting. A key can also be given on "
    "the\n"
    "command line (train.epochs=3) and in the environment (LOCKSTEP_TRAIN__EPOCHS=3).\n"
    "Command line > environment > file > default. [id]: the key identifies the run, and is frozen\n"
    "at its first start. Relative paths in a file are relative to the file. Short forms:\n"
    "'model: cnn', 'optimizer: sgd', 'schedule: cosine', 'data: {train: DIR}'.\n";

constexpr char kShortJob[] =
    "\nA short job file:\n"
    "  job: fashion\n"
    "  model: cnn\n"
    "  data: {train: fashion-mnist}\n"
    "  train: {global_batch: 128, epochs: 5}\n"
    "  optimizer: {name: adamw, lr: 0.006}\n"
    "  schedule: onecycle\n";

}  // namespace

std::string job_help() {
  std::string out = std::string(kIntroduction) + "\nSections:\n";
  for (const wire::JobSection& section : wire::job_sections())
    out += padded("  " + section.name, 14) + section.about + "\n";
  out +=
      "'lockstep run --help-job data' prints the keys of section data, '--help-job all' every "
      "key.\n"
      "\nKeys that most jobs set:\n" +
      padded(padded("  KEY", kKeyColumn) + "DEFAULT", kMeaningColumn) + "MEANING\n";
  for (const JobKey& row : job_keys())
    if (row.common) out += key_lines(row);
  return out + kShortJob;
}

Result<std::string> job_section_help(const std::string& section) {
  std::string out;
  for (const wire::JobSection& s : wire::job_sections())
    if (s.name == section || section == "all") out += (out.empty() ? "" : "\n") + section_lines(s);
  if (out.empty()) return no_section(section);
  return section == "all" ? kIntroduction + ("\n" + out) : out;
}

Result<std::string> job_section_table(const std::string& section) {
  for (const wire::JobSection& s : wire::job_sections())
    if (s.name == section) return section_table(section);
  for (const JobKey& row : job_keys())
    if (row.key == section && !row.values.empty()) return values_table(row);
  return no_section(section);
}

}  // namespace lockstep
