#include "comm/base/crc32c.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "comm/base/prng.h"

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

// Lengths around the three streams of the instruction, at every alignment, cut anywhere.
TEST(Crc32c, IsTheSameByInstructionByTablesAndInPieces) {
  Prng prng(5);
  std::string bytes(4 * 3072 + 16, ' ');
  for (char& c : bytes) c = static_cast<char>(prng.below(256));
  for (const size_t length : {0, 1, 7, 8, 9, 1024, 3071, 3072, 3073, 6144, 12'288, 12'295}) {
    for (size_t offset = 0; offset < 8; ++offset) {
      const std::string_view piece = std::string_view(bytes).substr(offset, length);
      const uint32_t whole = extend_crc32c_by_tables(0, piece);
      EXPECT_EQ(crc32c(piece), whole) << length << " at " << offset;
      const size_t cut = prng.below(piece.size() + 1);
      EXPECT_EQ(extend_crc32c(crc32c(piece.substr(0, cut)), piece.substr(cut)), whole)
          << length << " cut at " << cut;
    }
  }
}

}  // namespace
}  // namespace lockstep
