// Keys of a list of maps. "data.mix.0.path" is the key of the first map. One row of the schema,
// "data.mix.N.path", stands for the keys of all maps.
//
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "deploy/cli/keys/job_table.h"

namespace lockstep {

// The row of a key; null for an unknown key.
const JobKey* find_job_key(std::string_view key);
// True for "data.mix", whose value is a list of maps.
bool is_job_list(std::string_view key);
// The list that a row belongs to, such as "data.mix"; empty if it belongs to none.
std::string_view list_of(const JobKey& row);
// The key of one element of the row's list; the row's own key if it belongs to no list.
std::string numbered_key(const JobKey& row, size_t element);
// 3 for "data.mix.3.path"; 0 for keys outside of lists. REQUIRES: find_job_key(key).
size_t element_of(std::string_view key);
// The digits in `key` that number the element, if `key` is one of the row's; else empty.
std::string_view element_digits(const JobKey& row, std::string_view key);

}  // namespace lockstep
