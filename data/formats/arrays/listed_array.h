// Thread-safety: values.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "data/base/progress.h"
#include "data/formats/arrays/npy_array.h"

namespace lockstep::data {

// An array that is there, not opened.
struct ListedArray {
  std::string name;  // "depth" of depth.npy, or in its file
  std::string file;  // its file's name, which may say the split; empty if the name is the file's
  std::function<Result<NpyArray>(const std::string& cache_dir, const ProgressFn& progress)> open;
};

// The arrays of a path, in the order of their files; none if it has no file of the format.
using ListArraysFn = Result<std::vector<ListedArray>> (*)(const std::string& path);

}  // namespace lockstep::data
