#include "comm/base/text/shell_word.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

namespace lockstep {
namespace {

std::string echoed(const std::string& word) {
  const std::string command = "printf '%s' " + shell_word(word);
  std::FILE* shell = ::popen(command.c_str(), "r");
  char text[256] = {};
  const size_t n = std::fread(text, 1, sizeof text, shell);
  EXPECT_EQ(::pclose(shell), 0) << command;
  return std::string(text, n);
}

TEST(ShellWord, APlainWordStaysAsItIs) {
  EXPECT_EQ(shell_word("/runs/first-2.1"), "/runs/first-2.1");
  EXPECT_EQ(shell_word("comm.network=10.2.0.0/16"), "comm.network=10.2.0.0/16");
}

TEST(ShellWord, AShellGivesBackEveryOther) {
  for (const char* word : {"a b", "$HOME", "a;b", "it's", "*", "~", "a\\b", "\"q\"", "a&b", "(x)",
                           "#no", "[a]", "{a,b}", "a\tb", "`date`", "!x", "ä ö"})
    EXPECT_EQ(echoed(word), word);
  EXPECT_EQ(shell_word(""), "''");
}

}  // namespace
}  // namespace lockstep
