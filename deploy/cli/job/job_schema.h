// Reads and writes the values of job keys. A key is the path of a field of wire::JobSpec:
// "train.global_batch" is JobSpec.train.global_batch, and has the field's type. job_table.h
// has what is known of each key; job_list.h has the keys of lists of maps.
//
// Invariants
//   1. Every leaf field of JobSpec has exactly one row, and every row has such a field.
//   2. Setting a value checks its type and its range.
//   3. The text of a value can be set again and gives the same value.
//
// Thread-safety: immutable tables and free functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "comm/base/status.h"
#include "comm/run/job/job.pb.h"
#include "deploy/cli/keys/job_list.h"

namespace lockstep {

// Number of maps in a list. REQUIRES, of both functions: is_job_list(list).
size_t list_size(std::string_view list, const wire::JobSpec& spec);
void set_list_size(std::string_view list, size_t elements, wire::JobSpec& spec);
// True for "train" and "data.eval", which have keys below them.
bool is_job_group(std::string_view key);
// The row that a plain value given to `group` sets, or null.
const JobKey* shorthand_of_group(std::string_view group);
bool is_list(const JobKey& key);

// Sets the field. `items` has one element unless the key is a list. kUsage names the key, the value
// and the remedy. `element`: which map of the key's list; the list grows to hold it.
Status set_job_value(const JobKey& key, const std::vector<std::string>& items, wire::JobSpec& spec,
                     size_t element = 0);
// The field's value. Numbers have the shortest form that reads back as the same number. REQUIRES:
// the list has this element.
std::vector<std::string> job_value(const JobKey& key, const wire::JobSpec& spec,
                                   size_t element = 0);
// The value in messages: a list as "[a, b]", an empty text as "(empty)".
std::string job_value_text(const JobKey& key, const wire::JobSpec& spec, size_t element = 0);

}  // namespace lockstep
