// Whether a run directory is ours alone to write. job.pb names libraries that every process of the
// run loads, so a user who may write there can run code as us. read_job_spec() (run_files.h) checks
// it for every command; only commands that merely show a run read without.
//
// A directory is trusted if it and everything below it, however deep
//   - belongs to us
//   - is not writable by the group or others, or lies in a directory that no other user may enter
// Symbolic links of ours are fine where they lead to something that is trusted by the same rule.
// Below cache/ links may lead anywhere: there they stand for files of the data, which belong to the
// owner of the data.
//
// Some file systems cannot say owners (mounts of object stores, some shares).
// LOCKSTEP_TRUST_RUN_DIR=1 in the environment of every process of the run says that the directory
// is ours all the same.
//
// Thread-safety: free functions; reads the environment.
#pragma once

#include <string>

#include "comm/base/status.h"

namespace lockstep {

inline constexpr char kTrustRunDirVariable[] = "LOCKSTEP_TRUST_RUN_DIR";

// kConfig, with the command that mends it. Ok if there is no such directory.
Status check_trusted_run_dir(const std::string& run_dir);

// Makes the directory for us alone (0700), and its parents with the usual mode. Ok if it is there.
// kConfig if the disk is full, else kUsage.
Status make_run_dir(const std::string& run_dir);

}  // namespace lockstep
