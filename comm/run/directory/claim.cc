#include "comm/run/directory/claim.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "comm/base/byte_units.h"
#include "comm/base/descriptors.h"
#include "comm/base/file.h"
#include "comm/base/hash.h"
#include "comm/run/directory/layout.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr size_t kClaimBytes = 4 * kKib;

std::string terms_of(const std::string& run_dir) {
  return rundir::file_in(run_dir, rundir::kTerms);
}

std::string path_of(const std::string& run_dir, Term term) {
  return terms_of(run_dir) + "/" + std::to_string(term);
}

std::string random_hex() {
  const std::string bytes = random_bytes(8);
  return to_hex({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
}

// Ascending.
std::vector<Term> claimed_terms(const std::string& run_dir) {
  std::vector<Term> terms;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(terms_of(run_dir), error)) {
    const std::string name = entry.path().filename().string();
    Term term = 0;
    const char* end = name.data() + name.size();
    const auto parsed = std::from_chars(name.data(), end, term);
    if (parsed.ec == std::errc() && parsed.ptr == end && term > 0) terms.push_back(term);
  }
  std::sort(terms.begin(), terms.end());
  return terms;
}

Result<Claim> read_claim(const std::string& run_dir, Term term) {
  const std::string path = path_of(run_dir, term);
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string text, read_file(path, kClaimBytes));
  const auto json = nlohmann::json::parse(text, nullptr, false);
  const auto damaged = [&] { return Status(Code::kBadData, path + " is damaged"); };
  if (!json.is_object()) return damaged();
  Claim claim{.term = term};
  try {
    claim.seat = json.at("seat").get<std::string>();
    claim.node = json.at("node").get<std::string>();
    if (!json.at("pid").is_number_unsigned()) return damaged();
    claim.pid = json.at("pid").get<uint32_t>();
    claim.journal = json.at("journal").get<std::string>();
  } catch (const nlohmann::json::exception&) {
    return damaged();
  }
  // It names a file beside it, never one elsewhere.
  if (claim.journal.empty() || claim.journal.find('/') != std::string::npos) return damaged();
  return claim;
}

Status write_whole(const std::string& path, const std::string& text) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0) return {Code::kInternal, "cannot write " + path + ": " + errno_text(errno)};
  const bool is_written = write_all(fd, text) && ::fsync(fd) == 0;
  const int error = errno;
  ::close(fd);
  if (is_written) return Status::ok();
  return {Code::kInternal, "cannot write " + path + ": " + errno_text(error)};
}

Status refused(const std::string& run_dir, Term term) {
  const auto holder = read_claim(run_dir, term);
  const std::string who =
      holder.is_ok() ? "node " + holder->node + " (pid " + std::to_string(holder->pid) + ")"
                     : "another coordinator";
  return {Code::kRefused, "term " + std::to_string(term) + " of this run belongs to " + who};
}

}  // namespace

Term newest_claimed(const std::string& run_dir) {
  const auto terms = claimed_terms(run_dir);
  return terms.empty() ? 0 : terms.back();
}

Result<std::optional<Claim>> newest_claim(const std::string& run_dir) {
  const Term term = newest_claimed(run_dir);
  if (term == 0) return std::optional<Claim>();
  LOCKSTEP_ASSIGN_OR_RETURN(Claim claim, read_claim(run_dir, term));
  return std::optional<Claim>(std::move(claim));
}

bool is_claimed(const std::string& run_dir, Term term) {
  return ::access(path_of(run_dir, term).c_str(), F_OK) == 0;
}

std::string new_seat(const std::string& node) {
  return node + ":" + std::to_string(::getpid()) + ":" + random_hex();
}

Status claim_term(const std::string& run_dir, const Claim& claim) {
  const std::string directory = terms_of(run_dir);
  if (::mkdir(directory.c_str(), 0755) != 0 && errno != EEXIST)
    return {Code::kInternal, "cannot make " + directory + ": " + errno_text(errno)};
  const nlohmann::json json = {{"term", claim.term},
                               {"seat", claim.seat},
                               {"node", claim.node},
                               {"pid", claim.pid},
                               {"journal", claim.journal}};
  const std::string path = path_of(run_dir, claim.term);
  const std::string temporary = run_dir + "/terms.tmp." + random_hex();  // no other machine's
  ::unlink(temporary.c_str());
  Status status = write_whole(temporary, json.dump() + "\n");
  if (status.is_ok() && ::link(temporary.c_str(), path.c_str()) != 0) {
    const int error = errno;
    status = error == EEXIST
                 ? refused(run_dir, claim.term)
                 : Status(Code::kInternal, "cannot claim " + path + ": " + errno_text(error));
  }
  ::unlink(temporary.c_str());
  return status.is_ok() ? sync_directory(directory) : status;
}

std::string journal_path(const std::string& run_dir) {
  const auto terms = claimed_terms(run_dir);
  for (auto term = terms.rbegin(); term != terms.rend(); ++term) {
    const auto claim = read_claim(run_dir, *term);
    if (!claim.is_ok()) continue;
    std::string path = run_dir + "/" + claim->journal;
    if (::access(path.c_str(), F_OK) == 0) return path;
  }
  return rundir::file_in(run_dir, rundir::kJournal);
}

std::string lock_path(const std::string& journal) {
  const fs::path path(journal);
  const std::string stem = path.stem().string();  // "journal", "journal-7"
  return (path.parent_path() / ("lock" + stem.substr(std::min(stem.find('-'), stem.size()))))
      .string();
}

}  // namespace lockstep
