#include "coordinator/report/job_json.h"

#include <nlohmann/json.hpp>

#include "comm/run/job/job_fields.h"
#include "comm/run/job/job_options.pb.h"
#include "coordinator/report/json_values.h"

namespace lockstep::coordinator {
namespace {

using google::protobuf::Message;

// The default, which the name of the same group may choose.
std::string default_of(const wire::KeyOptions& options, const Message& holder) {
  const auto* const name = holder.GetDescriptor()->FindFieldByName("name");
  for (const auto& other : options.default_with())
    if (name != nullptr && wire::field_text(holder, *name) == other.name()) return other.default_();
  return options.default_();
}

}  // namespace

std::string job_json(const wire::JobSpec& job) {
  nlohmann::json settings = nlohmann::json::array();
  for (const wire::JobField& field : wire::job_fields()) {
    const wire::KeyOptions& options = *field.options;
    wire::for_each_holder(field, job, [&](const std::string& key, const Message& holder) {
      std::string value = wire::field_text(holder, *field.way.back());
      const bool is_changed = options.required() || value != default_of(options, holder);
      if (value == "0" && !options.zero().empty()) value = options.zero();
      settings.push_back({{"key", key}, {"value", value}, {"changed", is_changed}});
    });
  }
  return json_text({{"settings", settings}});
}

}  // namespace lockstep::coordinator
