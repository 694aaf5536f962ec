#include "comm/base/crc32c.h"

#include <gtest/gtest.h>

#include <string>

namespace lockstep {
namespace {

// RFC 3720, B.4.
TEST(Crc32c, IsCastagnolis) {
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(crc32c(std::string(32, '\xFF')), 0x62A8AB43u);
  std::string up(32, '\0');
  for (size_t i = 0; i < up.size(); ++i) up[i] = static_cast<char>(i);
  EXPECT_EQ(crc32c(up), 0x46DD794Eu);
  EXPECT_EQ(crc32c(""), 0u);
}

}  // namespace
}  // namespace lockstep
