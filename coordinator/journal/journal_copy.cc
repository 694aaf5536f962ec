#include "coordinator/journal/journal_copy.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <memory>

#include "comm/base/descriptors.h"
#include "comm/base/file.h"
#include "coordinator/journal/journal_chain.h"
#include "coordinator/journal/journal_head.h"
#include "coordinator/journal/sqlite.h"

namespace lockstep::coordinator {
namespace {

namespace fs = std::filesystem;

constexpr int kAttempts = 3;

// Where two files can share what they have in common (XFS, Btrfs), this takes no time however long
// the journal is, and a server of NFS 4.2 copies by itself. False: the file system cannot do it, or
// not between these files.
bool copy_in_kernel(const std::string& from, const std::string& to) {
  constexpr size_t kMostBytes = size_t{1} << 30;  // of one call
  const Descriptor in(::open(from.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat facts {};
  if (!in.is_open() || ::fstat(in.get(), &facts) != 0) return false;
  const Descriptor out(create_own_file(to, static_cast<int>(facts.st_mode & 07777)));
  if (!out.is_open()) return false;
  ssize_t copied = 1;
  while (copied > 0 || (copied < 0 && errno == EINTR))
    copied = ::copy_file_range(in.get(), nullptr, out.get(), nullptr, kMostBytes, 0);
  return copied == 0;
}

Status copy_file(const std::string& from, const std::string& to) {
  if (copy_in_kernel(from, to)) return Status::ok();
  std::error_code error;
  fs::copy_file(from, to, fs::copy_options::overwrite_existing, error);
  if (error) return {Code::kNoInput, "cannot copy the journal " + from + ": " + error.message()};
  return Status::ok();
}

// The log is copied after the file: what a checkpoint moves into the file meanwhile is in the log
// too. Only a later commit begins the log again, and such a commit sees the claim.
Status copy_files(const std::string& from, const std::string& to) {
  LOCKSTEP_RETURN_IF_ERROR(copy_file(from, to));
  std::error_code error;
  fs::remove(to + "-wal", error);
  if (!fs::exists(from + "-wal", error)) return Status::ok();
  return copy_file(from + "-wal", to + "-wal");
}

// Puts what the log holds into the file, which then needs none, and looks at what a writer may have
// changed during the copy. None: nothing was ever written to it.
Result<std::optional<JournalMark>> merge_log(const std::string& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto database, Database::open(path));
  LOCKSTEP_RETURN_IF_ERROR(database->execute("PRAGMA journal_mode=DELETE"));
  LOCKSTEP_ASSIGN_OR_RETURN(const uint64_t version, database->integer("PRAGMA user_version"));
  std::error_code error;
  if (fs::exists(path + "-wal", error))
    return Status(Code::kBadData, "its copy " + path + " is damaged");
  if (version == 0) return std::optional<JournalMark>();
  LOCKSTEP_ASSIGN_OR_RETURN(const auto chain, JournalChain::open(*database));
  LOCKSTEP_RETURN_IF_ERROR(chain->check(JournalCheck::kOpenPart).with_context("its copy " + path));
  return std::optional(chain->mark());
}

Status copy_once(const std::string& from, const std::string& to,
                 const std::optional<JournalMark>& head) {
  LOCKSTEP_RETURN_IF_ERROR(copy_files(from, to));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto mark, merge_log(to));
  const std::string why = mark ? against_head(*mark, head, first_term(from)) : "";
  return why.empty() ? Status::ok() : Status(Code::kBadData, from + " " + why);
}

}  // namespace

Status copy_journal(const std::string& from, const std::string& to,
                    const std::optional<JournalMark>& head) {
  const std::string temporary = to + ".tmp.copy";
  Status status;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    status = copy_once(from, temporary, head);
    if (status.is_ok()) break;
  }
  LOCKSTEP_RETURN_IF_ERROR(status);
  std::error_code error;
  fs::rename(temporary, to, error);
  if (error) return {Code::kInternal, "cannot rename " + temporary + ": " + error.message()};
  return sync_directory(fs::path(to).parent_path().string());
}

}  // namespace lockstep::coordinator
