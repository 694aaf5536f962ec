// The keys of a job file that have no place in a script's job (model.name script): the script says
// the same itself, in Python. The options `said_by_script` of the keys (job_options.proto) say so.
//
// Thread-safety: a pure function.
#pragma once

#include <string_view>

namespace lockstep {

// A sentence with the remedy: where the script says what `key` would say. Empty for a key that goes
// with a script. `key` may name a row, an element or a list ("optimizer.groups"). `has_data`: the
// job names the training data (data.train.path), which Lockstep then reads.
std::string_view said_by_script(std::string_view key, bool has_data);

}  // namespace lockstep
