#include "worker/process/trial_note.h"

#include <utility>

#include "comm/base/byte_units.h"
#include "comm/base/file.h"
#include "comm/run/directory/folder.h"

namespace lockstep {
namespace {

constexpr size_t kMostBytes = 4 * kKib;

}  // namespace

TrialNote::TrialNote(const std::string& directory, const std::string& gpu, std::string library)
    : path_(gpu.empty() ? "" : directory + "/nccl-trial-" + gpu + ".txt"),
      library_(std::move(library)) {}

// A file that cannot be read is no reason against a trial.
std::string TrialNote::known() const {
  if (path_.empty()) return "";
  const auto text = read_file(path_, kMostBytes);
  if (!text.is_ok()) return "";
  const size_t end = text->find('\n');
  if (end == std::string::npos || text->substr(0, end) != library_) return "";
  return text->substr(end + 1) + " (an earlier worker on this GPU found that; remove " + path_ +
         " to try again)";
}

Status TrialNote::remember(const std::string& why) const {
  if (path_.empty()) return Status::ok();
  rundir::make_folder_of(path_);
  return replace_file(path_, library_ + "\n" + why);
}

}  // namespace lockstep
