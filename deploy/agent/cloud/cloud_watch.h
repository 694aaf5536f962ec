// Asks the cloud's metadata service every few seconds whether this machine is to be taken away.
//
//   DMI names a cloud ──▶ ask every few seconds ──notice──▶ told once
//         │                      └ no answer for two minutes: told once; it asks on
//         └ none: it asks nothing, and has no thread
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
#include <string>
#include <thread>
#include <vector>

#include "comm/base/status.h"
#include "comm/http/http_client.h"
#include "deploy/agent/cloud/cloud_notice.h"

namespace lockstep {

struct MetadataService {
  Cloud cloud = Cloud::kNone;
  std::string url;      // without a slash at its end
  std::string address;  // HOST:PORT in numbers
};

// The service of this machine: what `setting` names (of LOCKSTEP_METADATA_URL; empty: not set),
// else by the files of `dmi`. kUsage for a setting of another form.
Result<MetadataService> metadata_service(const std::string& setting, const std::string& dmi);
Result<MetadataService> metadata_service();  // of this process and machine

// The service's client: asks all questions of its cloud. Thread-safety: one thread at a time.
class MetadataClient {
 public:
  // `stop` outlives it: once set, a request is broken off.
  MetadataClient(MetadataService service, const std::atomic<bool>& stop);

  // The notices that stand. kUnavailable, kTimeout or kRefused where a question has no answer.
  Result<std::vector<CloudNotice>> ask();

 private:
  Result<std::string> get(const std::string& path, const std::vector<std::string>& headers,
                          http::Method method = http::Method::kGet);
  Status sign_in();  // gets what the service wants to see, or to tell apart, with each question

  const MetadataService service_;
  http::HttpClient client_;
  std::string own_name_;  // Azure's
  std::string token_;     // AWS's
  int64_t token_until_s_ = 0;
};

// kCheckpointed if the service says now that this machine is to be taken away: nothing should start
// on it. Ok also where the service does not answer within seconds.
Status check_machine_stays(const MetadataService& service);

class CloudWatch {
 public:
  using NoticeFn = std::function<void(const CloudNotice&)>;
  using SilenceFn =
      std::function<void(const std::string& why)>;  // no answer for a while; told once

  CloudWatch(MetadataService service, NoticeFn on_notice, SilenceFn on_silence);
  ~CloudWatch();  // ends the thread; a request that is under way is broken off
  CloudWatch(const CloudWatch&) = delete;
  CloudWatch& operator=(const CloudWatch&) = delete;

 private:
  void watch();
  void look();

  const Cloud cloud_;
  const NoticeFn on_notice_;
  const SilenceFn on_silence_;
  std::atomic<bool> stop_{false};
  MetadataClient client_;
  std::vector<std::string> told_;  // the notices' words
  int silent_looks_ = 0;           // in a row
  bool told_silence_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::thread thread_;
};

}  // namespace lockstep
