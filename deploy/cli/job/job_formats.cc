#include "deploy/cli/job/job_formats.h"

#include <string>

#include "comm/run/job/data_formats.h"

namespace lockstep {
namespace {

// Finds the format of the files at `path`, if `format` leaves it open.
Status find_format(const JobContext& context, const wire::JobSpec& job, const std::string& path,
                   std::string* format) {
  const bool is_auto = *format == "auto";
  if (!is_auto && !is_open_format(*format)) return Status::ok();
  const std::string given = *format;
  if (is_auto) *format = "idx";
  if (path.empty()) return Status::ok();
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string local, context.local_path(job.data(), path));
  const auto found = context.detect_format(job.data(), local);
  if (!found.is_ok()) return found.status();
  if (is_auto || may_be_format(given, *found)) *format = *found;
  return Status::ok();
}

}  // namespace

Status resolve_formats(const JobContext& context, wire::JobSpec& job) {
  auto& data = *job.mutable_data();
  const wire::DatasetSpec& train = data.train();
  auto& eval = *data.mutable_eval();
  // The format that the job gives a directory holds for all of its files.
  if (eval.format() == "auto" && eval.path() == train.path()) eval.set_format(train.format());
  for (auto* set : {data.mutable_train(), &eval})
    LOCKSTEP_RETURN_IF_ERROR(find_format(context, job, set->path(), set->mutable_format()));
  for (auto& set : *data.mutable_mix())
    LOCKSTEP_RETURN_IF_ERROR(find_format(context, job, set.path(), set.mutable_format()));
  return Status::ok();
}

}  // namespace lockstep
