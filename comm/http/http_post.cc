#include "comm/http/http_post.h"

#include "comm/http/http_call.h"

namespace lockstep::http {

Result<GetResult> http_post(const Post& post, int64_t timeout_ms, size_t limit_bytes) {
  const std::string request =
      "POST " + post.path + " HTTP/1.0\r\nHost: " + rpc::to_string({post.host, post.address.port}) +
      "\r\nContent-Type: " + post.content_type +
      "\r\nContent-Length: " + std::to_string(post.body.size()) + "\r\n" +
      authorization_line(post.access.token) + "\r\n" + post.body;
  return http_call({post.address, post.host, request, post.access.tls}, timeout_ms, limit_bytes);
}

}  // namespace lockstep::http
