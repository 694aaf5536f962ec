#include "coordinator/journal/journal_copy.h"

#include <filesystem>
#include <memory>

#include "comm/base/file.h"
#include "coordinator/journal/journal_chain.h"
#include "coordinator/journal/sqlite.h"

namespace lockstep::coordinator {
namespace {

namespace fs = std::filesystem;

constexpr int kAttempts = 3;

// The log is copied after the file: what a checkpoint moves into the file meanwhile is in the log
// too, which is begun anew only by a commit later than that, and such a commit sees the claim.
Status copy_files(const std::string& from, const std::string& to) {
  std::error_code error;
  fs::copy_file(from, to, fs::copy_options::overwrite_existing, error);
  if (error) return {Code::kNoInput, "cannot copy the journal " + from + ": " + error.message()};
  fs::remove(to + "-wal", error);
  if (!fs::exists(from + "-wal", error)) return Status::ok();
  fs::copy_file(from + "-wal", to + "-wal", fs::copy_options::overwrite_existing, error);
  if (error) return {Code::kNoInput, "cannot copy " + from + "-wal: " + error.message()};
  return Status::ok();
}

// Puts what the log holds into the file, which then needs none, and looks at what a writer may have
// changed during the copy.
Status merge_log(const std::string& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto database, Database::open(path));
  LOCKSTEP_RETURN_IF_ERROR(database->execute("PRAGMA journal_mode=DELETE"));
  LOCKSTEP_ASSIGN_OR_RETURN(const uint64_t version, database->integer("PRAGMA user_version"));
  std::error_code error;
  if (fs::exists(path + "-wal", error))
    return {Code::kBadData, "the journal's copy " + path + " is damaged"};
  if (version == 0) return Status::ok();  // nothing was ever written to it
  LOCKSTEP_ASSIGN_OR_RETURN(const auto chain, JournalChain::open(*database));
  return chain->check(JournalCheck::kOpenPart).with_context("the journal's copy " + path);
}

}  // namespace

Status copy_journal(const std::string& from, const std::string& to) {
  const std::string temporary = to + ".tmp.copy";
  Status status;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    status = copy_files(from, temporary);
    if (status.is_ok()) status = merge_log(temporary);
    if (status.is_ok()) break;
  }
  LOCKSTEP_RETURN_IF_ERROR(status);
  std::error_code error;
  fs::rename(temporary, to, error);
  if (error) return {Code::kInternal, "cannot rename " + temporary + ": " + error.message()};
  return sync_directory(fs::path(to).parent_path().string());
}

}  // namespace lockstep::coordinator
