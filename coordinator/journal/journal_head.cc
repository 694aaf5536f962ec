#include "coordinator/journal/journal_head.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <sstream>

#include "comm/base/crc32c.h"
#include "comm/base/descriptors.h"
#include "comm/base/file.h"
#include "comm/run/directory/layout.h"

namespace lockstep::coordinator {
namespace {

constexpr char kMagic[] = "lockstep journal 1";
constexpr size_t kMostBytes = 256;

std::string with_crc(const std::string& text) {
  return text + " " + std::to_string(crc32c(text));
}

}  // namespace

std::string head_path(const std::string& journal) {
  return rundir::file_in(std::filesystem::path(journal).parent_path().string(), rundir::kHead);
}

std::optional<JournalMark> read_head(const std::string& path) {
  const auto text = read_file(path, kMostBytes);
  if (!text.is_ok() || !text->starts_with(kMagic)) return std::nullopt;
  const std::string line = text->substr(0, text->find('\n'));
  const size_t end = line.rfind(' ');
  if (end == std::string::npos || with_crc(line.substr(0, end)) != line) return std::nullopt;
  std::istringstream words(line.substr(sizeof kMagic - 1, end - (sizeof kMagic - 1)));
  JournalMark mark;
  if (!(words >> mark.lineage_id >> mark.term >> mark.sequence >> mark.digest)) return std::nullopt;
  return mark;
}

Term first_term(const std::string& journal) {
  const std::string stem = std::filesystem::path(journal).stem().string();  // "journal-7"
  const size_t dash = stem.rfind('-');
  Term term = 0;
  if (dash != std::string::npos)
    std::from_chars(stem.data() + dash + 1, stem.data() + stem.size(), term);
  return term;
}

std::string lost_end(const JournalMark& mark, uint64_t later, const std::string& witness) {
  return "has lost its end: its newest commit is " + std::to_string(mark.sequence) + ", and " +
         witness + " has seen commit " + std::to_string(later);
}

std::string against_head(const JournalMark& mark, const std::optional<JournalMark>& head,
                         Term first_term) {
  if (!head || mark.sequence == 0) return {};
  if (head->lineage_id != mark.lineage_id)
    return "is another one (lineage " + mark.lineage_id + ") than the one that was written here " +
           "last (lineage " + head->lineage_id + ")";
  // A coordinator that another one has replaced may have written last, for an older term.
  if (head->term < std::max(mark.term, first_term)) return {};
  if (head->term > mark.term || head->sequence > mark.sequence)
    return lost_end(mark, head->sequence, rundir::kHead);
  const bool differs = head->sequence == mark.sequence && head->digest != mark.digest;
  return differs ? "is not the one that was written here last" : "";
}

JournalHead::~JournalHead() {
  if (fd_ >= 0) ::close(fd_);
}

void JournalHead::write(const JournalMark& mark) {
  if (fd_ < 0) fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (fd_ < 0) return;
  // A shorter line leaves the end of a longer one after its newline, where no reader looks.
  const std::string line =
      with_crc(std::string(kMagic) + " " + mark.lineage_id + " " + std::to_string(mark.term) + " " +
               std::to_string(mark.sequence) + " " + std::to_string(mark.digest)) +
      "\n";
  (void)write_all_at(fd_, line, 0);
}

}  // namespace lockstep::coordinator
