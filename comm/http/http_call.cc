#include "comm/http/http_call.h"

#include <algorithm>
#include <atomic>
#include <utility>

namespace lockstep::http {
namespace {

Result<HttpAnswer> call(HttpRequest request, const rpc::Address& address, const std::string& host,
                        const std::string& path, const Access& access, size_t limit_bytes) {
  if (!access.tls) LOCKSTEP_RETURN_IF_ERROR(rpc::check_loopback(address));
  LOCKSTEP_ASSIGN_OR_RETURN(const rpc::Address numeric, rpc::numeric_address(address));
  const std::string name = rpc::to_string({host, address.port});
  request.url = (access.tls ? "https://" : "http://") + name + path;
  request.address = rpc::to_string(numeric);
  request.tls = access.tls;
  request.follows_redirects = false;
  request.most_bytes = limit_bytes;
  if (!access.token.empty()) request.headers.push_back("Authorization: Bearer " + access.token);
  const std::atomic<bool> never = false;
  HttpClient client(/*stall_s=*/0, never);
  auto answer = client.send(request);
  if (!answer.is_ok()) return answer.status().with_context(name);
  if (!answer->is_longer) return answer;
  return Status(Code::kRefused, name + ": the answer is larger than the limit of " +
                                    std::to_string(limit_bytes) + " bytes");
}

}  // namespace

Result<HttpAnswer> http_get(const rpc::Address& address, const std::string& path,
                            int64_t timeout_ms, const Access& access, size_t limit_bytes) {
  HttpRequest request;
  request.timeout_ms = std::max<int64_t>(timeout_ms, 1);
  return call(std::move(request), address, address.host, path, access, limit_bytes);
}

Result<HttpAnswer> http_post(const Post& post, int64_t timeout_ms, size_t limit_bytes) {
  HttpRequest request;
  request.timeout_ms = std::max<int64_t>(timeout_ms, 1);
  request.method = Method::kPost;
  request.body = post.body;
  request.headers = {"Content-Type: " + post.content_type};
  return call(std::move(request), post.address, post.host, post.path, post.access, limit_bytes);
}

}  // namespace lockstep::http
