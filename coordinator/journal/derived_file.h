// The common parts of the files that the coordinator derives from the journal, with a JSON line for
// each entry (history.h, eval_file.h).
//
// Thread-safety: free functions.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "comm/base/status.h"
#include "coordinator/journal/journal_entry.h"

namespace lockstep::coordinator {

// A JSON number of nine digits, or null if `value` is not a number.
std::string number_text(double value);

// `,"metrics":{"iou":0.5}`; empty without any.
std::string metrics_text(const std::vector<MetricValue>& metrics);

// kInternal, with errno. `doing`: "cannot open".
Status derived_file_error(const std::string& doing, const std::string& path);

// Whether `path` is the file that is open as `fd`, with `bytes` bytes.
bool is_still_there(int fd, const std::string& path, off_t bytes);

}  // namespace lockstep::coordinator
