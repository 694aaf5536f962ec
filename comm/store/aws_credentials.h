// The keys, endpoint and region for an S3-compatible server, found where AWS's own tools look.
//
//   keys      AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN; else the section
//             AWS_PROFILE ("default") of AWS_SHARED_CREDENTIALS_FILE (~/.aws/credentials), else of
//             AWS_CONFIG_FILE (~/.aws/config)
//   endpoint  AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, `endpoint_url` of that section
//   region    AWS_REGION, AWS_DEFAULT_REGION, `region` of that section; us-east-1
//
// INVARIANT: Lockstep writes no key into a message, log or file.
//
// Thread-safety: AwsCredentials from any thread; free functions.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "comm/base/status.h"

namespace lockstep::store {

struct AwsKeys {
  std::string key_id;  // empty: requests are not signed
  std::string secret;
  std::string session_token;
  std::optional<int64_t> expires_s;  // since 1970, where the file says so
  bool operator==(const AwsKeys&) const = default;
};

struct AwsPlace {
  std::string region;
  std::string endpoint;  // empty: Amazon's
};

// Sections of an INI file of AWS, by name ("profile x" as "x"), with their values.
using IniSections = std::map<std::string, std::map<std::string, std::string>>;
IniSections parse_ini(std::string_view text);

// Seconds since 1970 of "2026-11-24T08:00:00Z"; nothing for any other form.
std::optional<int64_t> parse_utc(const std::string& text);

class AwsCredentials {
 public:
  using EnvFn = std::function<std::string(const char* name)>;  // empty: not set
  using NowFn = std::function<int64_t()>;                      // seconds since 1970
  explicit AwsCredentials(EnvFn env = {}, NowFn now = {});     // none: this process's

  // Reads the keys at the first call, and again when they have expired. kNoInput for a named
  // profile that is in no file; kBadData when only half a key is there, or one that no header can
  // carry.
  Result<AwsKeys> keys();
  AwsPlace place() const;
  int64_t now_s() const { return now_(); }
  // Whether keys() now has other keys than `refused`, which a server refused.
  bool has_newer_than(const AwsKeys& refused);

 private:
  Result<AwsKeys> read() const;
  Result<AwsKeys> find() const;

  const EnvFn env_;
  const NowFn now_;
  std::mutex mutex_;
  std::optional<AwsKeys> keys_;
};

}  // namespace lockstep::store
