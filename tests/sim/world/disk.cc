#include "tests/sim/world/disk.h"

#include <algorithm>
#include <set>
#include <utility>

#include "comm/run/checkpoint/store.h"

namespace lockstep::sim {
namespace {

using coordinator::JournalContents;
using coordinator::JournalEntry;
using coordinator::MemoryJournal;
using coordinator::RecordsEntry;
using coordinator::StepEntry;

Status no_space() {
  return {Code::kInternal, "No space left on device (errno 28)"};
}

}  // namespace

class Disk::DiskJournal final : public coordinator::Journal {
 public:
  DiskJournal(Disk& disk, size_t commits) : disk_(disk) {
    for (size_t i = 0; i < commits; ++i)
      (void)memory_.commit(disk.commits_[i], disk.commit_times_[i]);
  }

  Status commit(std::span<const JournalEntry> entries, BothClocks now) override {
    if (!error_.is_ok()) return error_;
    error_ = disk_.commit(Entries(entries.begin(), entries.end()));
    if (!error_.is_ok()) return error_;
    disk_.commit_times_.push_back(now);
    LOCKSTEP_RETURN_IF_ERROR(memory_.commit(entries, now));
    disk_.head_ = memory_.mark();
    if (disk_.on_commit) disk_.on_commit(disk_.commits_.back());
    return Status::ok();
  }
  coordinator::JournalMark mark() const override { return memory_.mark(); }
  Result<JournalContents> load() override {
    LOCKSTEP_ASSIGN_OR_RETURN(JournalContents contents, memory_.load());
    contents.head = disk_.head_;
    return contents;
  }
  Result<std::vector<coordinator::LedgerRow>> ledger() override { return memory_.ledger(); }
  Result<std::vector<coordinator::FoldEntry>> folds() override { return memory_.folds(); }
  Status visit_steps(Step from, Step to,
                     const std::function<void(const StepEntry&)>& visit) override {
    return memory_.visit_steps(from, to, visit);
  }
  Result<std::vector<RecordsEntry>> batches(Generation generation, Step from, Step to) override {
    return memory_.batches(generation, from, to);
  }
  Result<coordinator::SlotMapEntry> slot_map(Generation generation) override {
    return memory_.slot_map(generation);
  }
  Result<std::string> start_of(Generation generation) override {
    return memory_.start_of(generation);
  }

 private:
  Disk& disk_;
  MemoryJournal memory_{"sim"};
  Status error_;
};

class Disk::DiskShelf final : public coordinator::CheckpointShelf {
 public:
  explicit DiskShelf(Disk& disk) : disk_(disk) {}
  Result<std::vector<ListedCheckpoint>> list() override {
    std::vector<ListedCheckpoint> found;
    for (const auto& [name, stored] : disk_.checkpoints_)
      found.push_back({*parse_checkpoint_name(name), stored.info.path,
                       disk_.load_checkpoint(name).status(), stored.info});
    return found;
  }
  Status verify(const ListedCheckpoint& checkpoint) override {
    return disk_.load_checkpoint(checkpoint.path).status();
  }

 private:
  Disk& disk_;
};

Status Disk::commit(const Entries& entries) {
  if (is_full) return no_space();
  if (failing_commits > 0) {
    --failing_commits;
    if (failed_commit_survives) keep(entries);
    return {Code::kInternal, "Input/output error (errno 5)"};
  }
  if (kill_in_commits > 0 && --kill_in_commits == 0) {
    if (killed_commit_survives) keep(entries);
    kill_writer();
    return {Code::kInternal, "killed inside a commit"};
  }
  if (kills_before && kills_before(entries)) {
    kills_before = nullptr;
    kill_writer();
    return {Code::kInternal, "killed before a commit"};
  }
  if (kills_after && kills_after(entries)) {
    kills_after = nullptr;
    keep(entries);
    kill_writer();
    return {Code::kInternal, "killed after a commit"};
  }
  commits_.push_back(entries);
  return Status::ok();
}

void Disk::keep(const Entries& entries) {
  commits_.push_back(entries);
  commit_times_.push_back(commit_times_.empty() ? BothClocks() : commit_times_.back());
  if (on_commit) on_commit(entries);
}

std::unique_ptr<coordinator::Journal> Disk::open_journal() {
  return std::make_unique<DiskJournal>(*this, commits_.size());
}

std::unique_ptr<coordinator::Journal> Disk::open_cut_journal(size_t commits) {
  return std::make_unique<DiskJournal>(*this, commits);
}

std::unique_ptr<coordinator::CheckpointShelf> Disk::open_shelf() {
  return std::make_unique<DiskShelf>(*this);
}

Result<CheckpointInfo> Disk::write_checkpoint(const Manifest& manifest, const ModelState& state) {
  if (is_full) return no_space();
  CheckpointInfo info;
  info.name = checkpoint_name(name_of(manifest));
  info.path = kCheckpointDirectory + info.name;
  info.manifest = manifest;
  info.manifest.weights_sha256 = "w" + std::to_string(state.hash);
  info.manifest_sha256 = "m" + info.name + std::to_string(state.hash);
  info.bytes = sizeof(state);
  // As write_checkpoint() of comm/run/checkpoint/store.h.
  if (const auto found = checkpoints_.find(info.name); found != checkpoints_.end()) {
    if (found->second.is_torn) return Status(Code::kInternal, info.name + " cannot be used");
    if (found->second.state == state) return found->second.info;
    return Status(Code::kInternal, info.name + " exists already and holds another state");
  }
  checkpoints_[info.name] = {info, state, std::exchange(tears_checkpoint, false)};
  return info;
}

Result<ModelState> Disk::load_checkpoint(const std::string& path) const {
  const auto found = checkpoints_.find(path.substr(path.find_last_of('/') + 1));
  if (found == checkpoints_.end()) return Status(Code::kNoInput, path + " is not there");
  if (found->second.is_torn) return Status(Code::kBadData, path + " is damaged");
  return found->second.state;
}

Result<std::string> Disk::see_manifest(const std::string& name) const {
  const auto found = checkpoints_.find(name);  // damage elsewhere does not show in it
  if (found == checkpoints_.end()) return Status(Code::kNoInput, name + " is not there");
  return found->second.info.manifest_sha256;
}

bool Disk::is_torn(const std::string& name) const {
  const auto found = checkpoints_.find(name);
  return found != checkpoints_.end() && found->second.is_torn;
}

void Disk::rot(Step last) {
  if (checkpoints_.empty()) return;
  const std::string& name = checkpoints_.rbegin()->first;
  Stored& newest = checkpoints_.rbegin()->second;
  if (newest.info.manifest.resume.step == last) return;
  // The run cannot go back to a checkpoint that was rolled back or never journalled.
  const auto contents = open_journal()->load();
  const bool is_another_left = std::any_of(
      contents->checkpoints.begin(), contents->checkpoints.end(), [&](const auto& entry) {
        return entry.state == coordinator::CheckpointState::kComplete && entry.name != name &&
               has_checkpoint(entry.name) && !is_torn(entry.name);
      });
  if (!is_another_left) return;
  newest.is_torn = true;
  has_failed = true;
}

void Disk::drop_checkpoints(const std::vector<std::string>& names, uint32_t keep) {
  if (keeps_dropped) return;
  std::vector<std::string> all;  // names sort by step
  for (const auto& [name, stored] : checkpoints_) all.push_back(name);
  const size_t newest = std::min<size_t>(all.size(), std::max(keep, 2u));
  const std::set<std::string> kept(all.end() - static_cast<std::ptrdiff_t>(newest), all.end());
  for (const std::string& name : names)
    if (kept.count(name) == 0) checkpoints_.erase(name);
}

}  // namespace lockstep::sim
