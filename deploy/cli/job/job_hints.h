// Guesses what the user meant by a key or a value that Lockstep does not have.
//
// A word that another program has for the same thing comes first (the options `elsewhere` and
// `value_elsewhere` in comm/run/job/job.proto), then a right word in the wrong place, then the
// nearest spelling.
//
// Thread-safety: free functions without state.
#pragma once

#include <string>

#include "comm/base/status.h"
#include "deploy/cli/keys/job_table.h"

namespace lockstep {

// The error for an unknown key. It names the key to take.
Status unknown_job_key(const std::string& key);

// "; did you mean cuda?", advice, or "". REQUIRES: `text` is none of key.names.
std::string job_value_hint(const JobKey& key, const std::string& text);

}  // namespace lockstep
