// Reads history.jsonl (history.h) back into steps, for a journal that is rebuilt.
//
// Thread-safety: free functions.
#pragma once

#include <string>
#include <vector>

#include "coordinator/journal/journal_entry.h"

namespace lockstep::coordinator {

// A step of which only the number is known. Its loss and learning rate are not numbers.
StepEntry unknown_step(Step step);

// The first `limit` steps, as far as whole lines are there in order; element n is step n. Without
// generation, and with the digits of the file.
std::vector<StepEntry> read_history(const std::string& path, Step limit);

}  // namespace lockstep::coordinator
