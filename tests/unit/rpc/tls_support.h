// Certificates for tests, as `lockstep certs` makes them.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "comm/tls/tls_identity.h"
#include "deploy/cli/base/certificates.h"

namespace lockstep::rpc {

inline constexpr int64_t kDay = 24 * 3600;

// A directory of its own for `name`, empty.
inline std::string empty_directory(const std::string& name) {
  std::string path = testing::TempDir() + "lockstep-" + name + "-" + std::to_string(::getpid());
  std::filesystem::remove_all(path);
  return path;
}

inline void issue(const std::string& directory, const std::vector<std::string>& hosts = {},
                  int64_t valid_seconds = kDay) {
  const auto issued = issue_certificate({directory, hosts, valid_seconds});
  ASSERT_TRUE(issued.is_ok()) << issued.status().message();
}

inline std::shared_ptr<TlsIdentity> identity(const std::string& directory, Logger& logger) {
  auto opened = TlsIdentity::open(directory, logger);
  EXPECT_TRUE(opened.is_ok()) << opened.status().message();
  return opened.is_ok() ? *opened : nullptr;
}

}  // namespace lockstep::rpc
