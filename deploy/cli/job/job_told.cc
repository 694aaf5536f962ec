#include "deploy/cli/job/job_told.h"

#include "deploy/cli/job/job_schema.h"
#include "deploy/cli/keys/job_list.h"

namespace lockstep {

std::string told(const JobValues& values, std::string_view key, const wire::JobSpec& job) {
  const auto it = values.find(key);
  const std::string origin = it == values.end() ? "default" : it->second.origin;
  return std::string(key) + " is " + job_value_text(*find_job_key(key), job, element_of(key)) +
         " (" + origin + ")";
}

}  // namespace lockstep
