#include "deploy/cli/job/check_fields.h"

#include <set>
#include <string>

#include "deploy/cli/job/job_told.h"

namespace lockstep {

Status check_fields(const JobValues& values, const wire::JobSpec& job) {
  const wire::DataSpec& data = job.data();
  const auto refused = [&](std::string_view key, const std::string& why) {
    return Status(Code::kUsage, told(values, key, job) + why);
  };
  if (!data.inputs().empty() && !data.input().empty())
    return refused("data.inputs", " but " + told(values, "data.input", job) +
                                      ": both name the input; leave data.input out");
  if (!data.targets().empty() && !data.label().empty())
    return refused("data.targets", " but " + told(values, "data.label", job) +
                                       ": both name what is to be learnt; leave data.label out");
  std::set<std::string> names;
  for (const auto& [key, list] :
       {std::pair("data.inputs", &data.inputs()), std::pair("data.targets", &data.targets())})
    for (const std::string& name : *list) {
      if (name.empty()) return refused(key, ": a name is empty; leave it out");
      if (!names.insert(name).second)
        return refused(key, ": " + name + " stands twice; name each field once");
    }
  if (!data.weight().empty() && names.count(data.weight()) > 0)
    return refused("data.weight", ": it is an input or a target already; name a column of weights");
  if (data.targets().empty() && data.weight().empty()) return Status::ok();
  for (const std::string& word : data.transforms())
    if (word.starts_with("mixup") || word.starts_with("cutmix"))
      return refused(
          "data.transforms",
          " but " + told(values, data.targets().empty() ? "data.weight" : "data.targets", job) +
              ": only one label of a sample can be mixed; leave out " + word);
  return Status::ok();
}

}  // namespace lockstep
