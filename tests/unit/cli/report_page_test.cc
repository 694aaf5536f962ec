#include "deploy/cli/watch/report_page.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(ReportPage, HoldsAllThatItNeeds) {
  const std::string page = report_page({"{\"run\":\"shoes\"}", "{}", "{}", "{}"}, "now");
  for (const char* part : {"src=", "href=\"/", "http-equiv=\"refresh", "@import", "url(", "fetch("})
    EXPECT_EQ(count(page, part), 0u) << part;
  EXPECT_EQ(count(page, "<style>"), 1u);
  EXPECT_EQ(count(page, "{\"made\":\"now\",\"status\":{\"run\":\"shoes\"}"), 1u);
  EXPECT_EQ(count(page, "default-src 'none'"), 1u);
  EXPECT_EQ(count(page, "unsafe"), 0u);
  EXPECT_EQ(count(page, "<script>"), count(page, "'sha256-") - 1) << "one more, for the style";
}

TEST(ReportPage, NoTextEndsItsScripts) {
  const std::string evil = R"({"run":"</script><script>alert(1)</script><!--"})";
  const std::string page = report_page({evil, "{}", "{}", evil, evil}, "</script>");
  const std::string plain = report_page({"{}", "{}", "{}", "{}"}, "");
  for (const char* part : {"<script", "</script", "<!--"})
    EXPECT_EQ(count(page, part), count(plain, part)) << part;
  EXPECT_NE(page.find(R"(\u003c/script>\u003cscript>alert(1))"), std::string::npos);
}

TEST(ReportPage, SeveralRunsAreOnePageAndNoNameEndsItsScripts) {
  const ReportData empty = {"{}", "{}", "{}", "{}"};
  const std::string page =
      comparison_page({{"</script><script>alert(1)", empty}, {"b", empty}}, "now");
  const std::string plain = comparison_page({{"a", empty}, {"b", empty}}, "now");
  for (const char* part : {"<script", "</script", "<!--"})
    EXPECT_EQ(count(page, part), count(plain, part)) << part;
  EXPECT_EQ(count(plain, "{\"name\":\""), 2u);
  EXPECT_EQ(count(plain, "unsafe"), 0u);
}

}  // namespace
}  // namespace lockstep
