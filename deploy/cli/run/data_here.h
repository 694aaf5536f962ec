// Finds remote data while a job file is read, to detect their format and look for evaluation data.
// They go into the cache directory, where the run will use them.
//
// Thread-safety: of one thread.
#pragma once

#include <map>
#include <string>

#include "comm/base/status.h"
#include "comm/run/job/job.pb.h"

namespace lockstep {

class FarData {
 public:
  // The local path of `path`, which is `path` itself for local data. Looks for each path once.
  // Shows progress on a terminal. Errors as data::find_place().
  Result<std::string> local_path(const wire::DataSpec& data, const std::string& path);

 private:
  std::map<std::string, Result<std::string>> found_;
};

}  // namespace lockstep
