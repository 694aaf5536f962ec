// Who we are to an S3-compatible server, found where AWS's own tools look.
//
//   keys      AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN; else the section
//             AWS_PROFILE ("default") of AWS_SHARED_CREDENTIALS_FILE (~/.aws/credentials), else of
//             AWS_CONFIG_FILE (~/.aws/config)
//   endpoint  AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, `endpoint_url` of that section
//   region    AWS_REGION, AWS_DEFAULT_REGION, `region` of that section; us-east-1
//
// INVARIANT: keys stand in no message, log or file of ours.
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

namespace lockstep::source {

struct AwsKeys {
  std::string key_id;  // empty: nobody; requests are not signed
  std::string secret;
  std::string session_token;
  std::optional<int64_t> expires_s;  // since 1970, where the file says so
  bool operator==(const AwsKeys&) const = default;
};

struct AwsPlace {
  std::string region;
  std::string endpoint;  // empty: Amazon's
};

// Sections of an INI file as AWS writes them, by name ("profile x" as "x"), and their values.
using IniSections = std::map<std::string, std::map<std::string, std::string>>;
IniSections parse_ini(std::string_view text);

// Seconds since 1970 of "2026-11-24T08:00:00Z"; nothing where it is not such a time in UTC.
std::optional<int64_t> parse_utc(const std::string& text);

class AwsCredentials {
 public:
  using EnvFn = std::function<std::string(const char* name)>;  // empty: not set
  using NowFn = std::function<int64_t()>;                      // seconds since 1970
  AwsCredentials(EnvFn env, NowFn now);
  AwsCredentials();  // of this process

  // Read at the first call, and again when what was read has expired. kNoInput where a profile is
  // named that is in no file; kBadData where half a key is there.
  Result<AwsKeys> keys();
  AwsPlace place() const;
  // A server said no to these. Whether there are others now: then keys() has them.
  bool has_newer_than(const AwsKeys& refused);

 private:
  Result<AwsKeys> read() const;

  const EnvFn env_;
  const NowFn now_;
  std::mutex mutex_;
  std::optional<AwsKeys> keys_;
};

}  // namespace lockstep::source
