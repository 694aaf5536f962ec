// Data that are far away, while a job file is read: their format is to be found, and whether there
// are such for evaluation, and for that they stand in the cache directory, as they will in the run.
//
// Thread-safety: of one thread.
#pragma once

#include <map>
#include <string>

#include "comm/base/status.h"
#include "comm/wire/job.pb.h"

namespace lockstep {

class FarData {
 public:
  // Of data here, `path`; a path is looked for once. Says on a terminal what takes long. Errors as
  // data::find_place().
  Result<std::string> local_path(const wire::DataSpec& data, const std::string& path);

 private:
  std::map<std::string, Result<std::string>> found_;
};

}  // namespace lockstep
