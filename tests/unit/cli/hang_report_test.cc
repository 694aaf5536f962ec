// The report of a hang: who did not come, and files that are no such notes.
#include "deploy/cli/watch/hang_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "comm/base/limits.h"
#include "comm/base/text/utf8.h"
#include "tests/support/files.h"
#include "tests/support/temporary_directory.h"

namespace lockstep {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

json operation(const std::string& name, const std::string& state, uint64_t step, uint64_t bucket) {
  json line = {{"operation", name}, {"state", state},   {"generation", 3},
               {"step", step},      {"bucket", bucket}, {"queued_ms", 31'000}};
  if (state != "queued") line["running_ms"] = 30'900;
  if (state == "done") line["ended_ms"] = 30'800;
  return line;
}

// Compilers differ on whether json{x} is a copy or an array of one; a vector is an array.
json notes_of(uint64_t rank, uint64_t world, const std::vector<json>& operations) {
  return {{"format", 1},
          {"written", "2026-11-29T12:00:00.000Z"},
          {"why", "a reason"},
          {"process", "worker-" + std::to_string(rank)},
          {"node", "vm"},
          {"pid", 40 + rank},
          {"generation", 3},
          {"rank", rank},
          {"world", world},
          {"applied", 12},
          {"buckets_finished", 2},
          {"buckets_given", 2},
          {"operations", operations},
          {"nccl", std::vector<std::string>{"NCCL WARN of " + std::to_string(rank)}}};
}

class HangReport : public ::testing::Test {
 protected:
  HangReport() { std::filesystem::create_directory(logs_); }
  void leave(const std::string& name, const std::string& content) {
    write_file(logs_ + "/" + name, content);
  }
  void leave(const json& notes) {
    leave(notes["process"].get<std::string>() + ".hang.json", notes.dump());
  }
  json report() const {
    const std::string text = hang_report(temporary_.path());
    EXPECT_TRUE(is_printable_utf8(text));
    return json::parse(text);
  }

  TemporaryDirectory temporary_;
  const std::string logs_ = temporary_.path() + "/logs";
};

TEST_F(HangReport, NamesTheRankThatDidNotComeToABucketAndPutsItFirst) {
  for (const uint64_t rank : {0, 2})
    leave(notes_of(rank, 3,
                   {operation("sum", "done", 12, 1), operation("sum", "running", 12, 2),
                    operation("sum", "queued", 12, 3)}));
  leave(notes_of(1, 3, {operation("sum", "done", 12, 1)}));
  const json found = report();
  EXPECT_EQ(found["generation"], 3);
  ASSERT_EQ(found["findings"].size(), 1u) << found["findings"];
  EXPECT_THAT(found["findings"][0],
              AllOf(HasSubstr("ranks 0, 2 wait in"), HasSubstr("bucket 2 of step 12"),
                    HasSubstr("rank 1 has not come")));
  ASSERT_EQ(found["ranks"].size(), 3u);
  EXPECT_EQ(found["ranks"][0]["rank"], 1);
  EXPECT_THAT(found["ranks"][0]["stands"], HasSubstr("since the sum of bucket 1 of step 12"));
  EXPECT_THAT(found["ranks"][1]["stands"], HasSubstr("in the sum of bucket 2 of step 12"));
  EXPECT_EQ(found["ranks"][1]["lines"].size(), 3u);
  EXPECT_THAT(found["ranks"][1]["nccl"], ElementsAre("NCCL WARN of 0"));
}

TEST_F(HangReport, AllThatCameAndTheirGpusAreNamedToo) {
  for (const uint64_t rank : {0, 1}) {
    json notes = notes_of(
        rank, 2, {operation("gpu_sum", "running", 12, 4), operation("gpu_wait", "running", 12, 0)});
    notes["buckets_given"] = rank == 1 ? 5 : 2;
    leave(notes);
  }
  const json found = report();
  ASSERT_EQ(found["findings"].size(), 1u) << found["findings"];
  EXPECT_THAT(found["findings"][0], HasSubstr("all ranks have come"));
  EXPECT_THAT(found["ranks"][1]["stands"], HasSubstr("finished 2 of 5 buckets"));
}

TEST_F(HangReport, ARankWithoutNotesIsNamed) {
  leave(notes_of(0, 3, {operation("sum", "running", 12, 2)}));
  leave(notes_of(1, 3, {operation("sum", "running", 12, 2)}));
  EXPECT_THAT(report()["findings"], Contains(HasSubstr("rank 2 left no notes")));
  EXPECT_THAT(report()["findings"], Not(Contains(HasSubstr("all ranks have come"))));
}

TEST_F(HangReport, OnlyTheNewestGenerationIsShown) {
  EXPECT_EQ(hang_report(temporary_.path()), "null");
  leave(notes_of(0, 2, {}));
  json newer = notes_of(1, 2, {});
  newer["generation"] = 5;
  leave(newer);
  EXPECT_EQ(report()["generation"], 5);
  EXPECT_EQ(report()["ranks"].size(), 1u);
}

// A file of the run directory is outside input.
TEST_F(HangReport, FilesThatAreNoNotesAreLeftOutAndTextsArePrintable) {
  json evil = notes_of(0, 1u << 31, {operation("sum\x1b[2J", "</script>\n", ~0ull, ~0ull)});
  evil["node"] = "\x1b]0;owned";
  evil["pid"] = -4;
  evil["nccl"] = json::array({"\x07", 5, std::string(100'000, 'x')});
  evil["operations"].push_back(operation("sum", "running", 12, 2));
  evil["operations"].push_back("no operation");
  leave(evil);
  for (int i = 0; i < 1'000; ++i) evil["operations"].push_back(operation("sum", "done", 1, 1));
  evil["rank"] = 1;
  evil["process"] = "worker-1";
  evil["nccl"] = nullptr;
  leave(evil);
  leave("worker-2.hang.json", std::string(100'000, '['));
  leave("worker-3.hang.json", "{}");
  leave("worker-4.hang.json", std::string(limits::kHangFileBytes + 1, ' '));
  leave("worker-5.hang.json", "\xff\xfe");
  std::filesystem::create_directory(logs_ + "/worker-6.hang.json");
  const json found = report();
  ASSERT_EQ(found["ranks"].size(), 2u);
  EXPECT_LE(found["ranks"][1]["lines"].size(), limits::kHangLines);
  EXPECT_LT(found.dump().size(), 100'000u);
}

TEST_F(HangReport, OfManyRanksOnlyTheFirstHaveLines) {
  for (uint64_t rank = 0; rank < 50; ++rank)
    leave(notes_of(rank, 50,
                   {operation("sum", rank == 49 ? "done" : "running", 12, rank == 49 ? 1 : 2)}));
  const json found = report();
  ASSERT_EQ(found["ranks"].size(), 50u);
  EXPECT_EQ(found["ranks"][0]["rank"], 49);
  size_t with_lines = 0;
  for (const json& rank : found["ranks"]) with_lines += rank.contains("lines");
  EXPECT_EQ(with_lines, limits::kHangRanksShown);
}

}  // namespace
}  // namespace lockstep
