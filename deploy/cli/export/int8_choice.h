// Reads the word of `--int8`, and says how it applies to a model.
//
// Thread-safety: pure functions.
#pragma once

#include <optional>
#include <string>

#include "comm/base/status.h"
#include "comm/run/job/job.pb.h"
#include "worker/model/exported_program/int8/int8_program.h"

namespace lockstep {

// The form for a word of --int8: auto, dynamic, weights. None for another word.
inline constexpr char kInt8Auto[] = "auto";
std::optional<exported::Int8Form> int8_form(const std::string& word);
const char* int8_form_word(exported::Int8Form form);

// kUsage, with what to do, for a model that has no export in 8 bits.
Status check_int8_model(const wire::ModelSpec& model);

// load.py for the weights of a built-in model. `loading`: lines that make `net` of `found`, the
// floats by name; empty: there is no library's model to make.
std::string int8_load_script(const std::string& loading);

}  // namespace lockstep
