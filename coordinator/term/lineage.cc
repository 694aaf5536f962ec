#include "coordinator/term/lineage.h"

#include <algorithm>

#include "comm/base/counted.h"
#include "comm/base/text/shell_word.h"
#include "comm/run/directory/layout.h"
#include "coordinator/journal/journal_head.h"

namespace lockstep::coordinator {
namespace {

constexpr size_t kMostNames = 8;

bool is_new(const JournalContents& contents) {
  return contents.mark.sequence == 0;
}

std::string against_checkpoints(const JournalContents& contents,
                                const std::vector<ListedCheckpoint>& on_disk) {
  for (const ListedCheckpoint& listed : on_disk) {
    if (!listed.status.is_ok()) continue;
    const Lineage& lineage = listed.info.manifest.lineage;
    if (lineage.id != contents.mark.lineage_id) continue;
    const std::string witness = "checkpoint " + listed.info.name;
    if (lineage.sequence > contents.mark.sequence)
      return lost_end(contents.mark, lineage.sequence, witness);
    // A generation is journalled before any worker hears of it.
    if (listed.name.generation > contents.last_generation)
      return "has lost its end: it does not know generation " +
             std::to_string(listed.name.generation) + ", of which " + witness + " is";
  }
  return {};
}

bool is_known(const JournalContents& contents, const CheckpointInfo& info) {
  return std::any_of(
      contents.checkpoints.begin(), contents.checkpoints.end(), [&](const CheckpointEntry& entry) {
        return entry.name == info.name && entry.manifest_sha256 == info.manifest_sha256;
      });
}

std::vector<ListedCheckpoint> foreign(const JournalContents& contents,
                                      const std::vector<ListedCheckpoint>& on_disk) {
  std::vector<ListedCheckpoint> found;
  for (const ListedCheckpoint& listed : on_disk) {
    const bool is_ours = !listed.status.is_ok() ||
                         listed.info.manifest.lineage.id == contents.mark.lineage_id ||
                         is_known(contents, listed.info);
    if (!is_ours) found.push_back(listed);
  }
  return found;
}

// Newest first.
std::string names_of(const std::vector<ListedCheckpoint>& on_disk) {
  std::string names;
  size_t count = 0;
  for (auto it = on_disk.rbegin(); it != on_disk.rend() && count < kMostNames; ++it, ++count)
    names += (names.empty() ? "" : ", ") + checkpoint_name(it->name);
  if (count < on_disk.size())
    names += " and " + std::to_string(on_disk.size() - count) + " older ones";
  return names;
}

// The newest that looks whole.
std::string best_of(const std::vector<ListedCheckpoint>& on_disk) {
  for (auto it = on_disk.rbegin(); it != on_disk.rend(); ++it)
    if (it->status.is_ok()) return it->info.name;
  return checkpoint_name(on_disk.back().name);
}

}  // namespace

Status lost_journal(const std::string& why, const std::vector<ListedCheckpoint>& on_disk,
                    const std::string& run_dir) {
  const std::string anew = "begin anew in another directory: lockstep run " +
                           shell_word(rundir::file_in(run_dir, rundir::kJobText)) +
                           " --run-dir OTHER";
  const std::string what = "the journal of " + run_dir + " " + why + "; nothing was changed. ";
  if (on_disk.empty())
    return {Code::kBadData, what +
                                "No checkpoint lies there to go on from. Remove the journal (rm " +
                                shell_word(rundir::file_in(run_dir, "journal")) +
                                "*) and resume again, which begins at step 0, or " + anew};
  return {Code::kBadData,
          what + "These checkpoints lie there: " + names_of(on_disk) +
              ". Go on from one, with a journal rebuilt from it: lockstep run --resume --run-dir " +
              shell_word(run_dir) + " --from-checkpoint " + best_of(on_disk) + ". Or " + anew};
}

Status check_lineage(const JournalContents& contents, const std::vector<ListedCheckpoint>& on_disk,
                     const std::string& run_dir, bool is_alive) {
  if (is_new(contents)) {
    if (on_disk.empty() && !is_alive) return Status::ok();
    return lost_journal("is lost", on_disk, run_dir);
  }
  std::string why = against_head(contents.mark, contents.head, contents.first_term);
  if (why.empty()) why = against_checkpoints(contents, on_disk);
  if (!why.empty()) return lost_journal(why, on_disk, run_dir);
  const auto strangers = foreign(contents, on_disk);
  if (strangers.empty()) return Status::ok();
  return {Code::kBadData,
          "checkpoint " + names_of(strangers) + " in " + run_dir + " belongs to another lineage (" +
              strangers.back().info.manifest.lineage.id + ") than the journal (" +
              contents.mark.lineage_id +
              "), which does not know it; nothing was changed. Move it to another directory and "
              "resume again, or go on from it instead of from the journal: lockstep run --resume "
              "--run-dir " +
              shell_word(run_dir) + " --from-checkpoint " + strangers.back().info.name};
}

std::string begins_anew(const JournalContents& contents) {
  if (!is_new(contents) || !contents.head || contents.head->sequence == 0) return {};
  return "the journal is lost (it had " + counted(contents.head->sequence, "commit") +
         "), and there is no checkpoint: the run begins anew at step 0";
}

}  // namespace lockstep::coordinator
