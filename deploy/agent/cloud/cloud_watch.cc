#include "deploy/agent/cloud/cloud_watch.h"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <utility>

#include "comm/base/file.h"
#include "comm/base/limits.h"
#include "comm/base/thread_name.h"
#include "comm/environment/blocked_signals.h"

namespace lockstep {
namespace {

constexpr char kLinkLocal[] = "169.254.169.254:80";
constexpr int64_t kAnswerMs = 1'000;
constexpr std::chrono::minutes kLongSilence(2);
constexpr int64_t kTokenSeconds = 21'600;  // the most that AWS gives

// GCP gives 30 s in all; the others give more, and ask not to be asked more often.
std::chrono::seconds pause_of(Cloud cloud) {
  return std::chrono::seconds(cloud == Cloud::kGcp ? 2 : 5);
}

std::string dmi_field(const std::string& directory, const char* name) {
  const auto text = read_file(directory + "/" + name, limits::kMetadataBytes);
  return text.is_ok() ? *text : "";
}

}  // namespace

Result<MetadataService> metadata_service(const std::string& setting, const std::string& dmi) {
  MetadataService service;
  if (setting.empty()) {
    service.cloud = cloud_of({.system_vendor = dmi_field(dmi, "sys_vendor"),
                              .product = dmi_field(dmi, "product_name"),
                              .bios_version = dmi_field(dmi, "bios_version"),
                              .chassis_tag = dmi_field(dmi, "chassis_asset_tag")});
    service.address = kLinkLocal;
    service.url = "http://169.254.169.254";
    return service;
  }
  const size_t equals = std::min(setting.find('='), setting.size());
  for (const Cloud cloud : {Cloud::kNone, Cloud::kAws, Cloud::kGcp, Cloud::kAzure})
    if (setting.substr(0, equals) == text_of(cloud)) service.cloud = cloud;
  constexpr std::string_view kHttp = "http://";
  service.url = setting.substr(std::min(equals + 1, setting.size()));
  if (setting == "none") return service;
  if (service.cloud == Cloud::kNone || !service.url.starts_with(kHttp) ||
      service.url.find('/', kHttp.size()) != std::string::npos)
    return Status(Code::kUsage,
                  "LOCKSTEP_METADATA_URL is '" + setting +
                      "'; it names a cloud and the address of its metadata service, such as "
                      "aws=http://127.0.0.1:8000, or none");
  service.address = service.url.substr(kHttp.size());
  return service;
}

Result<MetadataService> metadata_service() {
  const char* setting = std::getenv("LOCKSTEP_METADATA_URL");
  return metadata_service(setting == nullptr ? "" : setting, "/sys/class/dmi/id");
}

MetadataClient::MetadataClient(MetadataService service, const std::atomic<bool>& stop)
    : service_(std::move(service)), client_(/*stall_s=*/1, stop) {}

Result<std::vector<CloudNotice>> MetadataClient::ask() {
  LOCKSTEP_RETURN_IF_ERROR(sign_in());
  std::vector<CloudNotice> notices;
  for (const NoticeQuestion& question : questions_of(service_.cloud)) {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::string answer, get(question.path, question.headers));
    if (const auto notice = question.read(answer, ::time(nullptr), own_name_))
      notices.push_back(*notice);
  }
  return notices;
}

Status check_machine_stays(const MetadataService& service) {
  if (service.cloud == Cloud::kNone) return Status::ok();
  const std::atomic<bool> never = false;
  const auto notices = MetadataClient(service, never).ask();
  if (!notices.is_ok()) return Status::ok();
  for (const CloudNotice& notice : *notices)
    if (notice.is_certain)
      return {Code::kCheckpointed, "nothing starts here: this machine is to be taken away (" +
                                       notice.what + "); start the run on another one"};
  return Status::ok();
}

CloudWatch::CloudWatch(MetadataService service, NoticeFn on_notice, SilenceFn on_silence)
    : cloud_(service.cloud),
      on_notice_(std::move(on_notice)),
      on_silence_(std::move(on_silence)),
      client_(std::move(service), stop_) {
  if (cloud_ == Cloud::kNone) return;
  const BlockedSignals inherited;
  thread_ = std::thread([this] { watch(); });
}

CloudWatch::~CloudWatch() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void CloudWatch::watch() {
  name_this_thread("cloud");
  std::unique_lock lock(mutex_);
  while (!stop_.load()) {
    lock.unlock();
    look();
    lock.lock();
    changed_.wait_for(lock, pause_of(cloud_), [this] { return stop_.load(); });
  }
}

void CloudWatch::look() {
  const auto notices = client_.ask();
  if (stop_.load()) return;
  if (!notices.is_ok()) {
    // One answer may be late; Azure's first one takes up to two minutes.
    if (++silent_looks_ * pause_of(cloud_) < kLongSilence || std::exchange(told_silence_, true))
      return;
    return on_silence_(
        "the metadata service of the cloud (" + std::string(text_of(cloud_)) +
        ") does not answer here, so notices come by signal only: " + notices.status().message());
  }
  silent_looks_ = 0;
  for (const CloudNotice& notice : *notices) {
    if (std::ranges::find(told_, notice.what) != told_.end()) continue;
    told_.push_back(notice.what);
    on_notice_(notice);
  }
}

Status MetadataClient::sign_in() {
  if (service_.cloud == Cloud::kAzure && own_name_.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        own_name_, get("/metadata/instance/compute/name?api-version=2021-02-01&format=text",
                       {"Metadata: true"}));
  }
  const int64_t now_s = ::time(nullptr);
  if (service_.cloud != Cloud::kAws || now_s < token_until_s_) return Status::ok();
  token_.clear();
  auto token = get("/latest/api/token",
                   {"X-aws-ec2-metadata-token-ttl-seconds: " + std::to_string(kTokenSeconds)},
                   http::Method::kPut);
  LOCKSTEP_RETURN_IF_ERROR(token.status());
  const bool is_word =
      std::ranges::all_of(*token, [](unsigned char c) { return c > ' ' && c < 127; });
  if (token->empty() || !is_word) return {Code::kRefused, "the metadata service gave no token"};
  token_ = *token;
  token_until_s_ = now_s + kTokenSeconds / 2;
  return Status::ok();
}

// AWS answers 404 where there is no notice: empty.
Result<std::string> MetadataClient::get(const std::string& path,
                                        const std::vector<std::string>& headers,
                                        http::Method method) {
  http::HttpRequest request{.method = method,
                            .url = service_.url + path,
                            .headers = headers,
                            .most_bytes = limits::kMetadataBytes,
                            .follows_redirects = false,
                            .address = service_.address,
                            .timeout_ms = kAnswerMs};
  if (!token_.empty()) request.headers.push_back("X-aws-ec2-metadata-token: " + token_);
  LOCKSTEP_ASSIGN_OR_RETURN(http::HttpAnswer answer, client_.send(request));
  if (answer.status == 404 && service_.cloud == Cloud::kAws) return std::string();
  if (answer.status == 401) token_until_s_ = 0;  // a new one the next time
  if (answer.status != 200 || answer.is_longer)
    return Status(Code::kUnavailable,
                  "the metadata service answers " + std::to_string(answer.status));
  return std::move(answer.body);
}

}  // namespace lockstep
