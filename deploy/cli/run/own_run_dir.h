// Takes a run directory before a run begins: free, ours, writable, and in use by no other process.
//
// Invariants
//   1. While a RunDir lives, no other `lockstep run` works in the same directory (flock on
//      run.lock). A living coordinator holds a lock of its own (`lock`).
//   2. Only a resume touches files of an earlier run.
//   3. discard() removes only what open() created.
//
// Thread-safety: one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "comm/base/ids.h"
#include "comm/base/status.h"

namespace lockstep {

// True if the directory holds an earlier run, which could be continued.
bool holds_a_run(const std::string& path);

// True if the directory is missing, empty, or holds only what a run makes.
bool may_hold_a_run(const std::string& path);

// Steps in the newest checkpoint that is whole, from which the run could continue.
std::optional<Step> newest_checkpoint_step(const std::string& path);

// True if there is one.
bool has_checkpoint(const std::string& path);

// True if a process works in the directory.
bool is_in_use(const std::string& path);

// True if only a coordinator works there whose parent was killed. It ends by itself.
bool is_being_left(const std::string& path);

// Half a sentence if fewer bytes are free on the disk of `path`; else empty.
std::string lack_of_room(const std::string& path, uint64_t needed_bytes);

class RunDir {
 public:
  // Creates what is missing. `path` may be relative.
  // kUsage: a live job uses the directory; or it holds an earlier run and `resume` is false; or it
  // belongs to another user or is not writable. kNoInput: nothing to resume. kConfig: the disk is
  // full.
  static Result<RunDir> open(const std::string& path, bool resume);

  // A directory that no other run has, not even one that begins in the same second: `wanted`, or
  // `wanted`-2, -3, ... Errors as of open().
  static Result<RunDir> make_new(const std::string& wanted);

  // Removes the directory after a failed attempt, if open() made it, and the empty parents that
  // open() made. True if the directory is gone.
  bool discard();

  // Makes discard() keep the directory, in which other ranks read how the attempt ended.
  void keep() { created_.clear(); }

  // Removes half-written files of killed processes. REQUIRES: no process of the run lives.
  void sweep() const;

  RunDir(RunDir&& other) noexcept;
  RunDir& operator=(RunDir&&) = delete;
  ~RunDir();

  const std::string& path() const { return path_; }  // absolute
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  RunDir(std::string path, std::string created)
      : path_(std::move(path)), created_(std::move(created)) {}
  static Result<RunDir> prepared_at(const std::string& path, const std::string& created);
  Status prepare();

  std::string path_;
  std::string created_;  // the topmost directory that open() made; empty: none
  int lock_fd_ = -1;
};

// "runs/<job>-20261121-061500", in UTC.
std::string default_run_dir(const std::string& job, int64_t wall_ms);

}  // namespace lockstep
