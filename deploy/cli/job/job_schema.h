// The keys of a job file: one table, from which parsing, validation, printing, documentation and
// completion follow. A key is the path of a field of wire::JobSpec, so "train.global_batch" is
// JobSpec.train.global_batch, and the field's type is the key's type. Keys of a list
// of maps are in job_list.h.
//
// Invariants
//   1. Every leaf field of JobSpec has exactly one row, and every row is such a field.
//   2. Setting a value checks its type and its range; nothing out of range gets into a JobSpec.
//   3. The text of a value that was read back can be set again and gives the same value.
//
// Thread-safety: immutable tables and free functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "comm/base/status.h"
#include "comm/wire/job.pb.h"
#include "deploy/cli/job/job_list.h"

namespace lockstep {

// Of a list of maps (job_list.h). REQUIRES of both: is_job_list(list).
size_t list_size(std::string_view list, const wire::JobSpec& spec);
void set_list_size(std::string_view list, size_t elements, wire::JobSpec& spec);
// "train", "data.eval": a key that has others below it.
bool is_job_group(std::string_view key);
// The row that a plain value given to `group` sets, or null.
const JobKey* shorthand_of_group(std::string_view group);
bool is_list(const JobKey& key);

// Sets the field. `items` has one element unless the key is a list. The error names the key, the
// value and what would be right; kUsage. `element`: of the key's list, which gets so long.
Status set_job_value(const JobKey& key, const std::vector<std::string>& items, wire::JobSpec& spec,
                     size_t element = 0);
// The field's value; numbers in the shortest form that reads back the same. REQUIRES: the element
// is there.
std::vector<std::string> job_value(const JobKey& key, const wire::JobSpec& spec,
                                   size_t element = 0);
// For messages: a list as "[a, b]", an empty text as "(empty)".
std::string job_value_text(const JobKey& key, const wire::JobSpec& spec, size_t element = 0);

// The error for a key that is none, with the nearest that is one.
Status unknown_job_key(const std::string& key);

}  // namespace lockstep
