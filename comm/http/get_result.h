// An HTTP server's answer.
#pragma once

#include <string>

namespace lockstep::http {

struct GetResult {
  int status = 0;
  std::string body;
};

}  // namespace lockstep::http
