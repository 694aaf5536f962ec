#include "deploy/cli/job/job_values.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cctype>
#include <sstream>

#include "comm/base/limits.h"
#include "comm/base/log.h"
#include "deploy/cli/job/job_hints.h"
#include "deploy/cli/job/job_schema.h"
#include "deploy/cli/job/yaml_slips.h"
#include "deploy/cli/keys/job_list.h"

namespace lockstep {
namespace {

Status usage(const std::string& origin, const std::string& message) {
  return Status(Code::kUsage, origin + ": " + message);
}

// Walks the YAML tree down the schema's groups and fills a JobValues.
class Reader {
 public:
  // `name` of the file; for overrides and the environment the whole origin, without lines.
  Reader(std::string name, bool is_file) : name_(std::move(name)), is_file_(is_file) {}

  Status group(const std::string& prefix, const YAML::Node& node) {
    std::map<std::string, std::string> seen;
    for (const auto& entry : node) {
      const std::string origin = at(entry.first);
      if (!entry.first.IsScalar()) return usage(origin, "a key must be a word");
      if (entry.second.IsNull())  // a line without a colon is a key without a value
        LOCKSTEP_RETURN_IF_ERROR(check_colon(prefix, entry.first.Scalar(), origin));
      const std::string key = prefix + entry.first.Scalar();
      const auto [other, is_new] = seen.emplace(key, origin);
      if (!is_new) return usage(origin, shown(key) + " is given twice, first at " + other->second);
      LOCKSTEP_RETURN_IF_ERROR(value(key, entry.second, origin));
    }
    return Status::ok();
  }

  Status value(const std::string& key, const YAML::Node& node, const std::string& origin) {
    if (const JobKey* row = find_job_key(key)) return leaf(*row, key, node, origin);
    if (is_job_list(key)) return list(key, node, origin);
    if (!is_job_group(key)) return unknown_job_key(key).with_context(origin);
    if (node.IsMap()) return group(key + ".", node);
    if (node.IsScalar()) LOCKSTEP_RETURN_IF_ERROR(check_colon(key + ".", node.Scalar(), at(node)));
    const JobKey* row = shorthand_of_group(key);
    if (row != nullptr && node.IsScalar()) return leaf(*row, std::string(row->key), node, origin);
    return usage(origin, key + " must hold keys of its own, like " + first_key_below(key));
  }

  Status list(const std::string& key, const YAML::Node& node, const std::string& origin) {
    if (!node.IsSequence())
      return usage(origin, key + " must be a list of maps, as in [{path: DIR, weight: 2}]");
    values_[key] = {{std::to_string(node.size())}, origin, is_file_};
    size_t element = 0;
    for (const auto& item : node) {
      const std::string name = key + "." + std::to_string(element++);
      if (!item.IsMap())
        return usage(origin, name + " must hold keys of its own, as in {path: DIR, weight: 2}");
      LOCKSTEP_RETURN_IF_ERROR(group(name + ".", item));
    }
    return Status::ok();
  }

  JobValues take() { return std::move(values_); }

 private:
  Status leaf(const JobKey& row, const std::string& key, const YAML::Node& node,
              const std::string& origin) {
    JobValue value{{}, origin, is_file_};
    if (node.IsNull() || !node.IsDefined()) return usage(origin, key + " has no value");
    if (node.IsScalar()) {
      value.items.push_back(node.Scalar());
    } else if (node.IsSequence() && is_list(row)) {
      for (const auto& item : node) {
        if (!item.IsScalar()) return usage(origin, key + " must be a list of words");
        value.items.push_back(item.Scalar());
      }
    } else {
      return usage(origin, key + " must be " + (is_list(row) ? "a list of words" : "one value") +
                               ", not a " + (node.IsMap() ? "map" : "list"));
    }
    values_[key] = std::move(value);
    return Status::ok();
  }

  // "epochs 3" in the place of a key, where there is a key "epochs".
  static Status check_colon(const std::string& prefix, const std::string& text,
                            const std::string& origin) {
    const size_t end = text.find_first_of(" \t:");
    if (end == std::string::npos) return Status::ok();
    const std::string key = prefix + text.substr(0, end);
    if (find_job_key(key) == nullptr && !is_job_list(key) && !is_job_group(key))
      return Status::ok();
    const std::string slip = colon_slip(text);
    return slip.empty() ? Status::ok() : usage(origin, slip);
  }

  static std::string shown(const std::string& key) { return json_escape(key.substr(0, 120)); }

  static std::string first_key_below(const std::string& group) {
    for (const JobKey& row : job_keys())
      if (row.key.substr(0, group.size() + 1) == group + ".") return std::string(row.key);
    return group;
  }

  std::string at(const YAML::Node& node) const {
    return is_file_ ? name_ + ":" + std::to_string(node.Mark().line + 1) : name_;
  }

  std::string name_;
  bool is_file_;
  JobValues values_;
};

// Hears a document and keeps nothing.
class IgnoreEvents final : public YAML::EventHandler {
  using Mark = YAML::Mark;
  using Text = std::string;
  void OnDocumentStart(const Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const Mark&, YAML::anchor_t) override {}
  void OnAlias(const Mark&, YAML::anchor_t) override {}
  void OnScalar(const Mark&, const Text&, YAML::anchor_t, const Text&) override {}
  void OnSequenceStart(const Mark&, const Text&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const Mark&, const Text&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}
};

// Whether anything follows the first document. YAML::LoadAll would tell too, but yaml-cpp 0.7 never
// returns from it for some broken texts ("a}\nb"): it asks for the next document without end.
bool has_second_document(const std::string& text) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  IgnoreEvents ignore;
  return parser.HandleNextDocument(ignore) && parser.HandleNextDocument(ignore);
}

Status syntax_error(const std::string& origin, const YAML::Exception& error) {
  std::string place = origin;
  if (!error.mark.is_null())
    place +=
        ":" + std::to_string(error.mark.line + 1) + ":" + std::to_string(error.mark.column + 1);
  return usage(place, "not valid YAML: " + json_escape(error.msg));
}

// A parser stops where it has lost its way, which is often after the line that is wrong.
Status syntax_error(const std::string& name, std::string_view text, const YAML::Exception& error) {
  if (error.mark.is_null()) return syntax_error(name, error);
  const auto slip = find_yaml_slip(text, static_cast<size_t>(error.mark.line) + 1);
  if (!slip) return syntax_error(name, error);
  return usage(name + ":" + std::to_string(slip->line), "not valid YAML: " + slip->what);
}

// One value that came as text; lists and groups are YAML.
Status read_text(Reader& reader, const std::string& key, const std::string& text,
                 const std::string& origin) {
  const JobKey* row = find_job_key(key);
  const bool is_plain =
      row != nullptr ? !is_list(*row) : shorthand_of_group(key) && !text.starts_with("{");
  if (is_plain) return reader.value(key, YAML::Node(text), origin);
  try {
    return reader.value(key, YAML::Load(text), origin);
  } catch (const YAML::Exception& error) {
    return syntax_error(origin, error);
  }
}

}  // namespace

Result<JobValues> parse_job_yaml(std::string_view text, const std::string& name) {
  if (text.size() > limits::kJobFileBytes)
    return usage(name, "larger than the limit of " + std::to_string(limits::kJobFileBytes) +
                           " bytes for a job file");
  if (text.find('\0') != std::string_view::npos) return usage(name, "not a text file");
  try {
    const YAML::Node document = YAML::Load(std::string(text));
    if (has_second_document(std::string(text)))
      return usage(name, "holds more than one YAML document, or brackets that close nothing");
    if (!document.IsMap())
      return usage(name, "a job file is a map of keys; 'lockstep run --help-job' lists them");
    Reader reader(name, true);
    LOCKSTEP_RETURN_IF_ERROR(reader.group("", document));
    return reader.take();
  } catch (const YAML::Exception& error) {
    return syntax_error(name, text, error);
  }
}

Result<JobValues> parse_job_overrides(std::span<const std::string> overrides) {
  JobValues values;
  for (const std::string& text : overrides) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
      return Status(Code::kUsage, "\"" + json_escape(text) +
                                      "\" is not an override; write key=value, as in "
                                      "train.epochs=3");
    Reader reader("command line", false);
    LOCKSTEP_RETURN_IF_ERROR(
        read_text(reader, text.substr(0, equals), text.substr(equals + 1), "command line"));
    overlay(values, reader.take());
  }
  return values;
}

Result<JobValues> parse_job_environment(std::span<const std::string> environment) {
  constexpr std::string_view kPrefix = "LOCKSTEP_";
  JobValues values;
  for (const std::string& text : environment) {
    const size_t equals = text.find('=');
    if (!text.starts_with(kPrefix) || equals == std::string::npos) continue;
    const std::string name = text.substr(0, equals);
    std::string key = name.substr(kPrefix.size());
    for (size_t i = key.find("__"); i != std::string::npos; i = key.find("__", i))
      key.replace(i, 2, ".");
    std::transform(key.begin(), key.end(), key.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (key.find('.') == std::string::npos && find_job_key(key) == nullptr) continue;
    Reader reader(name, false);
    LOCKSTEP_RETURN_IF_ERROR(read_text(reader, key, text.substr(equals + 1), name));
    overlay(values, reader.take());
  }
  return values;
}

void overlay(JobValues& lower, const JobValues& upper) {
  // A list in `upper` replaces the list in `lower`: their elements do not mix.
  for (const auto& [key, value] : upper) {
    if (!is_job_list(key)) continue;
    const std::string elements = key + ".";
    std::erase_if(lower, [&](const auto& below) { return below.first.starts_with(elements); });
  }
  for (const auto& [key, value] : upper) lower[key] = value;
}

}  // namespace lockstep
