// Asks the cloud's metadata service again and again whether this machine is to be taken away.
//
//   DMI names a cloud ──▶ ask every few seconds ──notice──▶ told once
//         │                      └ nobody answers: told once, asked on
//         └ none: nothing is asked, no thread
//
// INVARIANTS
//  1. No address but the service's link-local one is asked, past any proxy, unless
//     LOCKSTEP_METADATA_URL (tests) names another: "aws=http://127.0.0.1:8000".
//  2. Each notice is told once: the same one again, or one whose time has moved, is none.
//  3. What the service answers is hostile: at most limits::kMetadataBytes of it are read.
//
// Thread-safety: made and destroyed on one thread; tells from a thread of its own.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "comm/base/status.h"
#include "comm/http/http_client.h"
#include "deploy/agent/cloud_notice.h"

namespace lockstep {

struct MetadataService {
  Cloud cloud = Cloud::kNone;
  std::string url;      // without a slash at its end
  std::string address;  // HOST:PORT in numbers
};

// The service of this machine: what `setting` names (of LOCKSTEP_METADATA_URL; empty: not set),
// else by the files of `dmi`. kUsage for a setting of another form.
Result<MetadataService> metadata_service(const std::string& setting, const std::string& dmi);

class CloudWatch {
 public:
  using NoticeFn = std::function<void(const CloudNotice&)>;
  using SilenceFn = std::function<void(const std::string& why)>;  // nobody answers; told once

  CloudWatch(MetadataService service, NoticeFn on_notice, SilenceFn on_silence);
  ~CloudWatch();  // ends the thread; a request that is under way is broken off
  CloudWatch(const CloudWatch&) = delete;
  CloudWatch& operator=(const CloudWatch&) = delete;

 private:
  void watch();
  void look();
  Result<std::string> ask(const std::string& path, const std::vector<std::string>& headers,
                          http::Method method = http::Method::kGet);
  Status sign_in();  // what a service wants before it answers questions

  const MetadataService service_;
  const NoticeFn on_notice_;
  const SilenceFn on_silence_;
  std::atomic<bool> stop_{false};
  http::HttpClient client_;
  std::string own_name_;  // Azure's
  std::string token_;     // AWS's
  int64_t token_until_s_ = 0;
  std::vector<std::string> told_;  // the notices' words
  bool told_silence_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::thread thread_;
};

}  // namespace lockstep
