#include "deploy/cli/script/script_keys.h"

#include <google/protobuf/descriptor.h>

#include <optional>
#include <string>

#include "comm/run/job/job.pb.h"
#include "comm/run/job/job_options.pb.h"

namespace lockstep {
namespace {

// The fields on the way to a key say this of it; the field nearest to the key holds.
struct Said {
  std::optional<std::string_view> by_script;
  std::optional<std::string_view> with_data;
};

void add(const wire::KeyOptions& options, Said& said);

Said said_of(std::string_view key) {
  Said said;
  const auto* type = wire::JobSpec::descriptor();
  while (!key.empty() && type != nullptr) {
    const size_t dot = key.find('.');
    const std::string word(key.substr(0, dot));
    key = dot == std::string_view::npos ? std::string_view() : key.substr(dot + 1);
    if (word == "N" || word.find_first_not_of("0123456789") == std::string::npos)
      continue;  // of a map of a list
    const auto* field = type->FindFieldByName(word);
    if (field == nullptr) break;
    add(field->options().GetExtension(wire::key), said);
    type = field->message_type();
  }
  return said;
}

void add(const wire::KeyOptions& options, Said& said) {
  if (options.has_said_by_script_as())
    said.by_script = said_of(options.said_by_script_as()).by_script;
  if (options.has_said_by_script()) said.by_script = options.said_by_script();
  if (options.has_said_by_script_with_data()) said.with_data = options.said_by_script_with_data();
}

}  // namespace

std::string_view said_by_script(std::string_view key, bool has_data) {
  const Said said = said_of(key);
  if (has_data && said.with_data) return *said.with_data;
  return said.by_script.value_or("");
}

}  // namespace lockstep
