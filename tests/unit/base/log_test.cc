#include "comm/base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "comm/base/file.h"
#include "comm/base/json_logger.h"
#include "comm/base/text/utf8.h"
#include "tests/support/fails_with.h"

namespace lockstep {
namespace {

TEST(Log, ALineCarriesEventMessageAndTypedFields) {
  const std::string path = testing::TempDir() + "log-" + std::to_string(::getpid());
  {
    auto log = open_json_logger(path, "worker-0", false);
    ASSERT_TRUE(log.is_ok());
    (*log)->info("started", "said \"hello\"\n",
                 {{"generation", uint64_t{3}}, {"loss", 0.5}, {"node", "n1"}, {"bad", NAN}});
  }
  const std::string line = *read_file(path, 10'000);
  EXPECT_NE(line.find(R"("level":"info","process":"worker-0","event":"started")"),
            std::string::npos)
      << line;
  EXPECT_NE(line.find(R"("message":"said \"hello\"\u000a")"), std::string::npos) << line;
  EXPECT_NE(line.find(R"("generation":3,"loss":0.5,"node":"n1","bad":"nan"})"), std::string::npos)
      << line;
  EXPECT_EQ(line.back(), '\n');
  std::filesystem::remove(path);
}

TEST(Log, EveryLineTellsWhereTheProcessStandsAndAFieldOfTheLineGoesBefore) {
  const std::string path = testing::TempDir() + "log-context-" + std::to_string(::getpid());
  LogContext context;
  {
    auto log = open_json_logger(path, "worker-0", false, [&context] { return context; });
    ASSERT_TRUE(log.is_ok());
    (*log)->info("early", "nothing is known");
    context = {"a \"run\"", 1, 3, 0};
    (*log)->info("late", "all is known");
    (*log)->info("own", "it tells its own", {{"generation", uint64_t{4}}, {"step", 7}});
  }
  const std::string text = *read_file(path, 10'000);
  EXPECT_NE(text.find("\"message\":\"nothing is known\"}"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("all is known","run":"a \"run\"","rank":1,"generation":3,"step":0})"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find(R"("it tells its own","run":"a \"run\"","rank":1,"generation":4,"step":7})"),
            std::string::npos)
      << text;
  std::filesystem::remove(path);
}

TEST(Log, APathThatCannotBeWrittenIsAnErrorThatNamesIt) {
  const auto log = open_json_logger("/proc/none/log", "x", false);
  EXPECT_THAT(log.status().message(), Names("/proc/none/log"));
}

TEST(Log, EscapingKeepsUtf8AndReplacesBytesThatAreNot) {
  EXPECT_EQ(json_escape("gr\xC3\xBC\xC3\x9F"), "gr\xC3\xBC\xC3\x9F");
  EXPECT_EQ(json_escape("a\xFF"
                        "b"),
            "a\xEF\xBF\xBD"
            "b");
  EXPECT_EQ(json_escape("\xC3"), "\xEF\xBF\xBD");
  for (const char* surrogate_overlong_or_too_large :
       {"\xED\xA0\x80", "\xE0\x80\x80", "\xF4\x90\x80\x80"})
    EXPECT_TRUE(is_utf8(json_escape(surrogate_overlong_or_too_large)));
}

}  // namespace
}  // namespace lockstep
