// Reads what a job says about opening its data.
// Thread-safety: pure functions.
#pragma once

#include <string>

#include "data/dataset/sample_cut.h"

namespace lockstep::wire {
class DataSpec;
class JobSpec;
}  // namespace lockstep::wire

namespace lockstep::data {

// The columns, arrays and files of a sample that a job names.
ColumnNames column_names(const wire::DataSpec& data);

SampleCut sample_cut(const wire::JobSpec& job);

// The directory where a run keeps inflated files and statistics: data.cache_dir, or its own
// directory.
std::string cache_directory(const wire::DataSpec& data, const std::string& run_dir);

}  // namespace lockstep::data
