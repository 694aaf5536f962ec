// Keys of the maps of a list: "data.mix.0.path" is that of the first, and its row in the schema,
// which stands for all of them, is "data.mix.N.path".
//
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "deploy/cli/job/job_table.h"

namespace lockstep {

// The row of a key; null where it is none.
const JobKey* find_job_key(std::string_view key);
// "data.mix": a key that has a list of maps.
bool is_job_list(std::string_view key);
// The list that a row is of, as in "data.mix"; empty where it is of none.
std::string_view list_of(const JobKey& row);
// The key of an element of the row's list; of other rows their own key.
std::string numbered_key(const JobKey& row, size_t element);
// Of a key that find_job_key() knows: 3 of "data.mix.3.path"; 0 of one that is of no list.
size_t element_of(std::string_view key);
// The digits of the element's number, where a key is one of the row's; else empty.
std::string_view element_digits(const JobKey& row, std::string_view key);

}  // namespace lockstep
