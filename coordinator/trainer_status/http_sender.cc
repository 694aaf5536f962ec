#include "coordinator/trainer_status/http_sender.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "comm/base/file.h"
#include "comm/base/thread_name.h"
#include "comm/http/http_call.h"
#include "comm/rpc/resolve.h"
#include "comm/tls/tls_context.h"

namespace lockstep::trainer {
namespace {

constexpr size_t kShownBytes = 200;  // of an answer

Result<std::string> read_token(const std::string& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(std::string token, read_file(path, kTokenBytes));
  while (!token.empty() && (token.back() == '\n' || token.back() == '\r')) token.pop_back();
  const bool is_token =
      !token.empty() && std::ranges::all_of(token, [](char c) { return c > ' ' && c < '\x7f'; });
  if (is_token) return token;
  return Status(Code::kConfig, path + " holds no token; check how the pod mounts it");
}

// The server's words about a failure: Kubernetes' Status has them in `message`.
std::string said_in(const std::string& body) {
  const auto parsed = nlohmann::json::parse(body, nullptr, false);
  const bool is_status =
      parsed.is_object() && parsed.contains("message") && parsed["message"].is_string();
  return (is_status ? parsed["message"].get<std::string>() : body).substr(0, kShownBytes);
}

std::string advice(long status) {
  if (status == 401 || status == 403)
    return "use a token of a pod of that TrainJob, for its audience";
  if (status == 404) return "check that the TrainJob is still there";
  if (status >= 300 && status < 400)
    return "Lockstep does not follow redirects, because the token is for that server alone; "
           "correct the URL";
  if (status >= 500 || status == 429) return "look at the log of Kubeflow Trainer's controller";
  return "check that this Kubeflow Trainer speaks the protocol of 2.2";
}

Status outcome_of(const http::HttpAnswer& answer, const std::string& name) {
  if (answer.status >= 200 && answer.status < 300) return Status::ok();
  return Status(Code::kRefused, name + " answers " + std::to_string(answer.status) + " (" +
                                    said_in(answer.body) + "): " + advice(answer.status));
}

}  // namespace

Status send_report(const Target& target, const rpc::Address& where, const std::string& body,
                   int64_t timeout_ms) {
  http::Post post{where, target.address.host, target.path, "application/json", body};
  LOCKSTEP_ASSIGN_OR_RETURN(post.access.token, read_token(target.token_path));
  if (target.is_tls) {
    LOCKSTEP_ASSIGN_OR_RETURN(post.access.tls,
                              rpc::TlsContext::load_authority(target.authority_path));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const http::HttpAnswer answer,
                            http::http_post(post, timeout_ms, kAnswerBytes));
  return outcome_of(answer, rpc::to_string(target.address));
}

HttpSender::~HttpSender() {
  alive_.reset();
  if (thread_.joinable()) thread_.join();
}

void HttpSender::send(std::string body, int64_t timeout_ms, Done done) {
  const int64_t end_ms = loop_.now_ms() + timeout_ms;
  rpc::resolve(loop_, target_.address, timeout_ms,
               [this, weak = std::weak_ptr<bool>(alive_), body = std::move(body), end_ms,
                done = std::move(done)](const Result<rpc::Address>& where) mutable {
                 if (weak.expired()) return;
                 if (!where.is_ok()) return done(where.status());
                 const int64_t left_ms = std::max<int64_t>(end_ms - loop_.now_ms(), 1);
                 post(*where, std::move(body), left_ms, done);
               });
}

void HttpSender::post(const rpc::Address& where, std::string body, int64_t timeout_ms,
                      const Done& done) {
  if (thread_.joinable()) thread_.join();  // the last report's thread has posted its outcome
  try {
    thread_ = std::thread([this, weak = std::weak_ptr<bool>(alive_), where, timeout_ms, done,
                           body = std::move(body)] {
      name_this_thread("trainer-status");
      loop_.post([weak, done, status = send_report(target_, where, body, timeout_ms)] {
        if (!weak.expired()) done(status);
      });
    });
  } catch (const std::system_error& error) {
    done(Status(Code::kUnavailable,
                std::string("cannot start a thread to report with: ") + error.what()));
  }
}

}  // namespace lockstep::trainer
