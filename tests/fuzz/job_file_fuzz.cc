// Any bytes as a job file: an error of one line, or a job that prints and reads back as itself.
#include <google/protobuf/util/message_differencer.h>

#include <cstdint>
#include <string_view>

#include "comm/base/check.h"
#include "deploy/cli/job/job_print.h"
#include "deploy/cli/job/job_resolve.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto values = parse_job_yaml(text, "job.yaml");
  const JobContext context{"/jobs", "/home", 2};
  if (!values.is_ok()) {
    LOCKSTEP_CHECK(values.status().message().find('\n') == std::string::npos, "one line");
    return 0;
  }
  const auto job = resolve_job(*values, context);
  if (!job.is_ok()) return 0;
  const auto again_values = parse_job_yaml(job_yaml(*job), "again.yaml");
  LOCKSTEP_CHECK(again_values.is_ok(), "a printed job parses");
  const auto again = resolve_job(*again_values, context);
  LOCKSTEP_CHECK(again.is_ok(), "a printed job resolves");
  LOCKSTEP_CHECK(google::protobuf::util::MessageDifferencer::Equals(*job, *again),
                 "a printed job is the same job");
  return 0;
}
