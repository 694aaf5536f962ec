#include "deploy/cli/job/job_split.h"

#include <string>

#include "deploy/cli/job/job_told.h"

namespace lockstep {

Status resolve_split(const JobValues& values, wire::JobSpec& job) {
  auto& data = *job.mutable_data();
  if (data.holdout() == 0) return Status::ok();
  const auto refused = [&](const char* key, const char* why) {
    return Status(Code::kUsage, told(values, "data.holdout", job) + " but " +
                                    told(values, key, job) + ": " + why);
  };
  constexpr char kOneOfTwo[] =
      "evaluation data come either from the training data or from other files; leave one of the "
      "two out";
  const wire::DatasetSpec& eval = data.eval();
  const bool is_path_given = values.count("data.eval.path") > 0;
  if (is_path_given && eval.path() != data.train().path())
    return refused("data.eval.path", kOneOfTwo);
  const bool is_format_given = values.count("data.eval.format") > 0 && eval.format() != "auto";
  if (is_format_given && eval.format() != data.train().format())
    return refused("data.eval.format", kOneOfTwo);
  if (eval.fraction() != 0 && eval.fraction() != 1)
    return refused("data.eval.fraction",
                   "evaluation uses all held-out samples; hold out fewer instead");
  data.mutable_eval()->set_path(data.train().path());
  data.mutable_eval()->set_format(data.train().format());
  return Status::ok();
}

}  // namespace lockstep
