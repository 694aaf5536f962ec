// Opens the binary version of CIFAR-10 and CIFAR-100 (cifar_files.h) as a Dataset.
// Thread-safety: a free function; any thread and process.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "data/base/progress.h"
#include "data/dataset/dataset.h"
#include "data/formats/arrays/cifar_files.h"

namespace lockstep::data {

// kBadData if a file is empty, ends inside a record, or has a label that is no class. The classes
// are the format's, even if some never occur. REQUIRES: paths is not empty.
Result<std::unique_ptr<Dataset>> open_cifar_dataset(const std::vector<std::string>& paths,
                                                    const CifarFormat& format,
                                                    const std::string& cache_dir,
                                                    const ProgressFn& progress);

}  // namespace lockstep::data
