#include "comm/base/text/printable.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(Printable, TextAsPeopleWriteItStays) {
  for (const char* text : {"", "a line\nand\tanother\n", "Müller, 数据, \xf0\x9f\x99\x82", "100 %"})
    EXPECT_EQ(printable(text), text);
}

TEST(Printable, WhatSteersATerminalIsShownInstead) {
  EXPECT_EQ(printable("\x1b[2Jgone"), "\\x1b[2Jgone");
  EXPECT_EQ(printable("done\rlost"), "done\\x0dlost");
  EXPECT_EQ(printable("\x07\x7f"), "\\x07\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"
                      "2J"),
            "\\xc2\\x9b2J")
      << "the same in one character";
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
}

TEST(Printable, WhatTurnsTextIsShownInstead) {
  EXPECT_EQ(printable("\xe2\x80\xae"
                      "gpj.exe"),
            "\\xe2\\x80\\xaegpj.exe");
  EXPECT_EQ(printable("\xe2\x81\xa6x\xe2\x80\xa9"), "\\xe2\\x81\\xa6x\\xe2\\x80\\xa9");
}

TEST(Printable, BytesThatAreNotUtf8AreShownInstead) {
  EXPECT_EQ(printable("caf\xe9"), "caf\\xe9");
  EXPECT_EQ(printable("\x9b"
                      "2J"),
            "\\x9b2J");
}

TEST(Printable, ANameStaysInItsLine) {
  EXPECT_EQ(printable_line("a\nlockstep: done\tand\x1b[2J"), "a\\nlockstep: done\\tand\\x1b[2J");
  EXPECT_EQ(printable_line("Müller"), "Müller");
}

TEST(Printable, NoLineOfAMessageLooksLikeAMessage) {
  EXPECT_EQ(printable_message("no file a\nlockstep: done"), "no file a\n  lockstep: done");
}

}  // namespace
}  // namespace lockstep
