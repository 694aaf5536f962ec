// The data of the status page in addition to the status: curves, generations and events, as JSON.
// The request bounds the size, within fixed limits.
//
// Thread-safety: pure functions.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "coordinator/journal/journal_entry.h"
#include "coordinator/report/curves.h"
#include "coordinator/report/timeline.h"

namespace lockstep::coordinator {

inline constexpr size_t kHistoryPoints = 500;  // the default
inline constexpr size_t kListedEvents = 200;   // the default

// /api/v1/history: columns of equal length, a point for every `width` steps:
//   first (steps applied before it), loss, loss_min, loss_max, lr, samples_per_second;
// and "evals", the evaluations of the surviving lineage. `turns`: steps of a batch, whose samples
// count once.
std::string history_json(const Curves& curves, const std::map<Step, EvalEntry>& evals,
                         uint32_t turns, size_t points);

// /api/v1/events: {"events": [...], "generations": [...]}, newest first, at most `limit` of each.
std::string events_json(const Timeline& timeline, size_t limit);

// The number of `key` in a query such as "points=500&x=1", within [1, most]. `otherwise` if the key
// is missing or its value is not a number.
size_t query_number(std::string_view query, std::string_view key, size_t otherwise, size_t most);

}  // namespace lockstep::coordinator
