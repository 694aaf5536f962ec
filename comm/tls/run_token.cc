#include "comm/tls/run_token.h"

#include <algorithm>

#include "comm/base/clock.h"
#include "comm/base/file.h"
#include "comm/base/hash.h"
#include "comm/base/limits.h"

namespace lockstep::rpc {
namespace {

constexpr size_t kTokenBytes = 32;
constexpr size_t kStartBytes = 8;
constexpr std::string_view kStart = "start ";

std::string random_hex(size_t bytes) {
  const std::string random = random_bytes(bytes);
  return to_hex({reinterpret_cast<const uint8_t*>(random.data()), random.size()});
}

bool is_hex(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

}  // namespace

Result<std::string> create_token_file(const std::string& path) {
  const std::string token = random_hex(kTokenBytes);
  LOCKSTEP_RETURN_IF_ERROR(replace_file(path, token + "\n", 0600));
  return token;
}

Result<std::string> create_run_token(const std::string& path) {
  const std::string token = random_hex(kTokenBytes);
  const std::string start = std::string(kStart) + random_hex(kStartBytes);
  LOCKSTEP_RETURN_IF_ERROR(replace_file(path, token + "\n" + start + "\n", 0600));
  return token;
}

Result<std::string> read_token_file(const std::string& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(TokenFile::Content content, TokenFile::read(path));
  return std::move(content.token);
}

Result<TokenFile::Content> TokenFile::read(const std::string& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(
      const std::string text,
      read_private_file(path, "token file", limits::kTokenFileBytes, Links::kRefused));
  const size_t end = std::min(text.find('\n'), text.size());
  Content content{text.substr(0, end), ""};
  std::string_view rest = std::string_view(text).substr(std::min(end + 1, text.size()));
  if (rest.starts_with(kStart)) {
    rest.remove_prefix(kStart.size());
    content.start = std::string(rest.substr(0, rest.find('\n')));
  }
  if (content.token.size() != 2 * kTokenBytes || !is_hex(content.token))
    return Status(Code::kConfig,
                  path + " does not hold a token (64 hex digits): start the run anew");
  return content;
}

TokenFile::TokenFile(std::string path, FileWatch watch, Content content, Logger& logger)
    : path_(std::move(path)),
      logger_(logger),
      watch_(std::move(watch)),
      content_(std::move(content)) {}

Result<std::shared_ptr<TokenFile>> TokenFile::open(const std::string& path, Logger& logger) {
  FileWatch watch({path});  // looks before the file is read
  LOCKSTEP_ASSIGN_OR_RETURN(Content content, read(path));
  return std::shared_ptr<TokenFile>(
      new TokenFile(path, std::move(watch), std::move(content), logger));
}

std::vector<std::string> TokenFile::accepted(bool look_now) {
  std::lock_guard lock(mutex_);
  const int64_t now_ms = SystemClock().monotonic_ms();
  // A file server's earlier answer may be old. Opening the file asks it again.
  if (watch_.has_changed(now_ms) || look_now) read_again(now_ms);
  if (now_ms >= old_until_ms_) old_.clear();
  std::vector<std::string> tokens = {content_.token};
  if (!old_.empty()) tokens.push_back(old_);
  return tokens;
}

void TokenFile::read_again(int64_t now_ms) {
  auto found = read(path_);
  std::string complaint;
  if (!found.is_ok())
    complaint = found.status().message();
  else if (!found->start.empty() && !content_.start.empty() && found->start != content_.start)
    complaint = path_ + " is of a later start of the run";
  const bool is_news = complaint != complaint_;
  complaint_ = complaint;
  if (!complaint.empty()) {
    if (is_news) logger_.warn("token_not_read_again", "keeping the old token: " + complaint);
    return;
  }
  if (found->token == content_.token) return;
  old_ = content_.token;
  old_until_ms_ = now_ms + limits::kOldTokenMs;
  content_ = std::move(found).value();
  logger_.info("token_read_again",
               "the token in " + path_ + " was replaced; the old one holds for " +
                   std::to_string(limits::kOldTokenMs / 60'000) + " minutes more");
}

}  // namespace lockstep::rpc
