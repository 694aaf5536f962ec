#include "worker/process/model_notes.h"

#include <vector>

#include "comm/base/file.h"
#include "comm/run/directory/layout.h"

namespace lockstep {

Status tell_model_notes(const std::string& run_dir, const Engine& engine, Logger& logger) {
  const std::vector<std::string> notes = engine.notes();
  std::string text;
  for (const std::string& note : notes) {
    logger.info("model", note);
    text += note + "\n";
  }
  return notes.empty() ? Status::ok()
                       : replace_file(rundir::log_in(run_dir, rundir::kModelNotes), text);
}

}  // namespace lockstep
