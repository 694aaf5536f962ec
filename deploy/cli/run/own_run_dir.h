// The run directory before a run begins: is it free, ours, writable, and are we alone in it?
//
// Invariants
//   1. While a RunDir lives, no other `lockstep run` works in the same directory (flock on
//      run.lock); a coordinator holds a lock of its own (`lock`) for as long as it lives.
//   2. Nothing of an earlier run is touched unless it is resumed.
//   3. discard() removes only what open() created.
//
// Thread-safety: one thread.
#pragma once

#include <cstdint>
#include <string>

#include "comm/base/status.h"

namespace lockstep {

// An earlier run is there, which could be continued.
bool holds_a_run(const std::string& path);

// Not there, empty, or with what a run makes: nobody else's directory.
bool may_hold_a_run(const std::string& path);

// Somebody works in the directory.
bool is_in_use(const std::string& path);

// Nobody works in the directory but a coordinator whose parent was killed: it ends by itself.
bool is_being_left(const std::string& path);

// Half a sentence that says so if fewer bytes are free on the disk of `path`; else empty.
std::string lack_of_room(const std::string& path, uint64_t needed_bytes);

class RunDir {
 public:
  // Creates what is missing. `path` may be relative. kUsage when a live job uses it, when it holds
  // an earlier run and `resume` is false, when it is somebody else's directory or not writable;
  // kNoInput when there is nothing to resume; kConfig when the disk is full.
  static Result<RunDir> open(const std::string& path, bool resume);

  // An attempt that came to nothing leaves nothing: the directory is removed if open() made it, and
  // so are the empty parents that it made. True if it is gone.
  bool discard();

  // Other ranks are to read in it how the attempt ended: discard() leaves it.
  void keep() { created_.clear(); }

  // Removes what processes that were killed left half written. REQUIRES: no process of the run
  // lives.
  void sweep() const;

  RunDir(RunDir&& other) noexcept;
  RunDir& operator=(RunDir&&) = delete;
  ~RunDir();

  const std::string& path() const { return path_; }  // absolute
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  RunDir(std::string path, std::string created)
      : path_(std::move(path)), created_(std::move(created)) {}
  Status prepare();

  std::string path_;
  std::string created_;  // the topmost directory that open() made; empty: none
  int lock_fd_ = -1;
};

// "runs/<job>-20261121-061500", in UTC.
std::string default_run_dir(const std::string& job, int64_t wall_ms);

}  // namespace lockstep
