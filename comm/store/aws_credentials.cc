#include "comm/store/aws_credentials.h"

#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "comm/base/file.h"
#include "comm/base/limits.h"

namespace lockstep::store {
namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

std::string process_env(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string path_of(const AwsCredentials::EnvFn& env, const char* name, const char* usual) {
  const std::string said = env(name);
  return said.empty() ? env("HOME") + "/.aws/" + usual : said;
}

// Empty if the file cannot be read: a machine need not have it.
IniSections read_ini(const std::string& path) {
  const auto text = read_file(path, limits::kCredentialsFileBytes);
  return text.is_ok() ? parse_ini(*text) : IniSections();
}

std::string profile_of(const AwsCredentials::EnvFn& env) {
  const std::string said = env("AWS_PROFILE");
  return said.empty() ? "default" : said;
}

// A setting of the profile in the config file.
std::string config_value(const AwsCredentials::EnvFn& env, const char* key) {
  const IniSections sections = read_ini(path_of(env, "AWS_CONFIG_FILE", "config"));
  const auto section = sections.find(profile_of(env));
  if (section == sections.end()) return {};
  const auto value = section->second.find(key);
  return value == section->second.end() ? "" : value->second;
}

std::string first_of(const std::initializer_list<std::string>& values) {
  for (const std::string& value : values)
    if (!value.empty()) return value;
  return {};
}

Status half_a_key(const std::string& where) {
  return {Code::kBadData, where +
                              " has one of an access key's two halves; set AWS_ACCESS_KEY_ID and "
                              "AWS_SECRET_ACCESS_KEY, or aws_access_key_id and "
                              "aws_secret_access_key in the file"};
}

// Nothing if the section has no keys.
Result<std::optional<AwsKeys>> keys_in(const std::map<std::string, std::string>& section,
                                       const std::string& path) {
  const auto value = [&](const char* key) {
    const auto found = section.find(key);
    return found == section.end() ? std::string() : found->second;
  };
  AwsKeys keys{
      value("aws_access_key_id"), value("aws_secret_access_key"), value("aws_session_token"), {}};
  if (keys.key_id.empty() && keys.secret.empty()) return std::optional<AwsKeys>();
  if (keys.key_id.empty() || keys.secret.empty()) return half_a_key(path);
  keys.expires_s = parse_utc(first_of(
      {value("expiration"), value("x_security_token_expires"), value("aws_session_expiration")}));
  return std::optional(std::move(keys));
}

}  // namespace

IniSections parse_ini(std::string_view text) {
  IniSections sections;
  std::string name;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view whole = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::string_view line = trimmed(whole);
    if (line.empty() || line.front() == '#' || line.front() == ';') continue;
    if (line.front() == '[' && line.back() == ']') {
      std::string_view said = trimmed(line.substr(1, line.size() - 2));
      if (said.starts_with("profile ")) said = trimmed(said.substr(8));
      name = said;
      sections[name];
      continue;
    }
    const size_t equals = line.find('=');
    // An indented line belongs to the setting above ("s3 =").
    if (equals == std::string_view::npos || whole.front() == ' ' || whole.front() == '\t') continue;
    sections[name][std::string(trimmed(line.substr(0, equals)))] =
        std::string(trimmed(line.substr(equals + 1)));
  }
  return sections;
}

std::optional<int64_t> parse_utc(const std::string& text) {
  tm parts{};
  const char* end = ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  if (end == nullptr) return std::nullopt;
  const std::string_view rest(end);
  if (rest != "Z" && rest != "+00:00" && rest != "+0000") return std::nullopt;
  return ::timegm(&parts);
}

AwsCredentials::AwsCredentials(EnvFn env, NowFn now)
    : env_(env ? std::move(env) : process_env),
      now_(now ? std::move(now) : [] { return static_cast<int64_t>(::time(nullptr)); }) {}

Result<AwsKeys> AwsCredentials::read() const {
  LOCKSTEP_ASSIGN_OR_RETURN(const AwsKeys keys, find());
  for (const std::string& text : {keys.key_id, keys.secret, keys.session_token})
    if (!std::ranges::all_of(text, [](unsigned char c) { return c > ' ' && c < 127; }))
      return Status(Code::kBadData,
                    "an access key or its session token has a character in it that none has; check "
                    "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN and ~/.aws");
  return keys;
}

Result<AwsKeys> AwsCredentials::find() const {
  // A file that became a variable ends in a line break.
  const auto variable = [this](const char* name) { return std::string(trimmed(env_(name))); };
  AwsKeys keys{variable("AWS_ACCESS_KEY_ID"),
               variable("AWS_SECRET_ACCESS_KEY"),
               variable("AWS_SESSION_TOKEN"),
               {}};
  if (!keys.key_id.empty() && !keys.secret.empty()) return keys;
  if (!keys.key_id.empty() || !keys.secret.empty()) return half_a_key("the environment");
  const std::string profile = profile_of(env_);
  bool is_known = false;
  for (const std::string& path : {path_of(env_, "AWS_SHARED_CREDENTIALS_FILE", "credentials"),
                                  path_of(env_, "AWS_CONFIG_FILE", "config")}) {
    const IniSections sections = read_ini(path);
    const auto section = sections.find(profile);
    if (section == sections.end()) continue;
    is_known = true;
    LOCKSTEP_ASSIGN_OR_RETURN(const auto found, keys_in(section->second, path));
    if (found) return *found;
  }
  if (!is_known && !env_("AWS_PROFILE").empty())
    return Status(Code::kNoInput, "AWS_PROFILE names the profile " + profile +
                                      ", which is neither in AWS's credentials file nor in its "
                                      "config file");
  return AwsKeys();
}

Result<AwsKeys> AwsCredentials::keys() {
  std::lock_guard lock(mutex_);
  const bool is_old = keys_ && keys_->expires_s && *keys_->expires_s <= now_();
  if (keys_ && !is_old) return *keys_;
  LOCKSTEP_ASSIGN_OR_RETURN(keys_, read());
  return *keys_;
}

AwsPlace AwsCredentials::place() const {
  return {first_of({env_("AWS_REGION"), env_("AWS_DEFAULT_REGION"), config_value(env_, "region"),
                    "us-east-1"}),
          first_of({env_("AWS_ENDPOINT_URL_S3"), env_("AWS_ENDPOINT_URL"),
                    config_value(env_, "endpoint_url")})};
}

bool AwsCredentials::has_newer_than(const AwsKeys& refused) {
  std::lock_guard lock(mutex_);
  const auto found = read();
  if (!found.is_ok()) return false;
  keys_ = *found;
  return *keys_ != refused;
}

}  // namespace lockstep::store
