// The notes on the model for the user (Model::notes()): in the worker's log, and in
// logs/model-notes.txt of the run, which `lockstep run` shows on its terminal.
//
// Thread-safety: a free function.
#pragma once

#include <string>

#include "comm/base/log.h"
#include "comm/base/status.h"
#include "worker/engine/engine.h"

namespace lockstep {

// Every worker writes the same file. Does nothing for a model without notes.
Status tell_model_notes(const std::string& run_dir, const Engine& engine, Logger& logger);

}  // namespace lockstep
