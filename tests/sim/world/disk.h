// The simulated disk of a run: commits of the journal, checkpoints, and their failures.
//
// A written commit is durable. A coordinator that is killed inside a commit leaves it or not (J1: a
// prefix of the begun commits). A full disk fails every write until there is room again, but a
// journal that failed once stays broken until it is opened again (J2). A failed write may be on the
// disk all the same.
//
// Thread-safety: one thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/journal/journal_memory.h"
#include "coordinator/term/resume.h"
#include "tests/sim/world/reference.h"

namespace lockstep::sim {

class Disk {
 public:
  using Entries = std::vector<coordinator::JournalEntry>;

  // ---- faults
  bool is_full = false;
  bool has_failed = false;  // or was full at any time
  // This many commits fail, as a write or an fsync does. `survives`: they are durable even so.
  uint32_t failing_commits = 0;
  bool failed_commit_survives = false;
  // The next checkpoint stays half-written, and its writer dies.
  bool tears_checkpoint = false;
  // Dropped checkpoints stay, because their writer always dies before it deletes them.
  bool keeps_dropped = false;
  // The commit after this many more kills its process; 0: none. `survives`: it is durable even so.
  uint32_t kill_in_commits = 0;
  bool killed_commit_survives = false;
  // The first commit that fulfils the condition is durable, and kills its process at once.
  std::function<bool(const Entries&)> kills_after;
  // The first commit that fulfils the condition is lost, and its process with it.
  std::function<bool(const Entries&)> kills_before;
  std::function<void()> kill_writer;

  // Sees every durable commit.
  std::function<void(const Entries&)> on_commit;

  const std::vector<Entries>& commits() const { return commits_; }
  // The disk as a new process finds it.
  std::unique_ptr<coordinator::Journal> open_journal();
  // A journal that has lost its end: only its first commits are there, and the file with its head
  // is not changed.
  std::unique_ptr<coordinator::Journal> open_cut_journal(size_t commits);

  Result<CheckpointInfo> write_checkpoint(const Manifest& manifest, const ModelState& state);
  Result<std::string> see_manifest(const std::string& name) const;  // its hash
  Result<ModelState> load_checkpoint(const std::string& path) const;
  void drop_checkpoints(const std::vector<std::string>& names, uint32_t keep);
  // The newest checkpoint becomes unreadable, unless no other whole checkpoint counts, or it is the
  // checkpoint of `last`.
  void rot(Step last);
  bool is_torn(const std::string& name) const;
  bool has_checkpoint(const std::string& name) const { return checkpoints_.count(name) != 0; }
  std::unique_ptr<coordinator::CheckpointShelf> open_shelf();

 private:
  class DiskJournal;
  class DiskShelf;
  struct Stored {
    CheckpointInfo info;
    ModelState state;
    bool is_torn = false;
  };

  Status commit(const Entries& entries);
  void keep(const Entries& entries);

  std::vector<Entries> commits_;
  std::vector<BothClocks> commit_times_;
  std::optional<coordinator::JournalMark> head_;  // journal_head.h
  std::map<std::string, Stored> checkpoints_;
};

inline constexpr char kCheckpointDirectory[] = "/run/checkpoints/";

}  // namespace lockstep::sim
