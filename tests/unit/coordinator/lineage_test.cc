// The table of lineage.h.
#include "coordinator/term/lineage.h"

#include <gtest/gtest.h>

#include "tests/support/fails_with.h"

namespace lockstep::coordinator {
namespace {

ListedCheckpoint on_disk(Step step, const std::string& lineage, uint64_t sequence) {
  ListedCheckpoint listed;
  listed.name = {step, 1, 1};
  listed.info.name = checkpoint_name(listed.name);
  listed.info.manifest_sha256 = "m";
  listed.info.manifest.lineage.id = lineage;
  listed.info.manifest.lineage.sequence = sequence;
  return listed;
}

ListedCheckpoint unreadable(Step step) {
  ListedCheckpoint listed = on_disk(step, "", 0);
  listed.status = Status(Code::kBadData, "damaged");
  return listed;
}

JournalContents whole(uint64_t sequence = 50, Term term = 2) {
  JournalContents contents;
  contents.last_generation = 1;
  contents.mark = {"ours", term, sequence, 9};
  contents.head = contents.mark;
  return contents;
}

JournalContents lost() {
  JournalContents contents;
  contents.head = JournalMark{"ours", 2, 50, 9};
  return contents;
}

Status check(const JournalContents& contents, const std::vector<ListedCheckpoint>& disk,
             bool is_alive = false) {
  return check_lineage(contents, disk, "/runs/x", is_alive);
}

TEST(Lineage, AWholeJournalGoesOnBesideItsOwnCheckpoints) {
  EXPECT_TRUE(check(whole(), {}).is_ok());
  EXPECT_TRUE(check(whole(), {on_disk(100, "ours", 20), on_disk(200, "ours", 50)}).is_ok());
  EXPECT_TRUE(check(whole(), {unreadable(100), on_disk(200, "ours", 50)}).is_ok());
  EXPECT_TRUE(check(whole(), {on_disk(100, "ours", 20)}, true).is_ok());
}

TEST(Lineage, ANewJournalBeginsOnlyWhereNothingLies) {
  EXPECT_TRUE(check({}, {}).is_ok());
  EXPECT_TRUE(check(lost(), {}).is_ok());
  EXPECT_THAT(check({}, {on_disk(100, "ours", 20)}),
              FailsWith(Code::kBadData, Names("/runs/x", checkpoint_name({100, 1, 1})),
                        Advises("--from-checkpoint " + checkpoint_name({100, 1, 1}))));
  EXPECT_THAT(check({}, {unreadable(100)}), FailsWith(Code::kBadData));
  EXPECT_THAT(check({}, {}, true), FailsWith(Code::kBadData));  // workers train
}

TEST(Lineage, AJournalWithoutItsEndIsRefused) {
  JournalContents cut = whole(40);
  cut.head = JournalMark{"ours", 2, 50, 9};
  EXPECT_THAT(check(cut, {}), FailsWith(Code::kBadData, Names("40", "50")));
  JournalContents older = whole(60, 1);  // a copy of another seat went on in a newer term
  older.head = JournalMark{"ours", 2, 50, 9};
  EXPECT_THAT(check(older, {}), FailsWith(Code::kBadData));
  JournalContents restored = whole(40);
  restored.head.reset();
  EXPECT_THAT(check(restored, {on_disk(100, "ours", 41)}),
              FailsWith(Code::kBadData, Names(checkpoint_name({100, 1, 1}), "40", "41")));
}

TEST(Lineage, AJournalThatDoesNotKnowTheGenerationOfACheckpointIsRefused) {
  JournalContents restored = whole(2);
  restored.head.reset();
  restored.last_generation = 0;
  EXPECT_THAT(check(restored, {on_disk(100, "ours", 0)}),
              FailsWith(Code::kBadData, Names(checkpoint_name({100, 1, 1}))));
}

TEST(Lineage, AnotherJournalIsRefused) {
  JournalContents other = whole();
  other.head->lineage_id = "another";
  EXPECT_THAT(check(other, {}), FailsWith(Code::kBadData, Names("ours", "another")));
}

TEST(Lineage, ACoordinatorThatWasReplacedHasNoSay) {
  JournalContents contents = whole(50, 7);
  contents.head = JournalMark{"ours", 6, 60, 1};
  EXPECT_TRUE(check(contents, {}).is_ok());
  JournalContents copy = whole(50, 6);  // without a commit of its own
  copy.first_term = 8;
  copy.head = JournalMark{"ours", 7, 60, 1};
  EXPECT_TRUE(check(copy, {}).is_ok());
  copy.head->term = 8;
  EXPECT_THAT(check(copy, {}), FailsWith(Code::kBadData, Names("50", "60")));
}

TEST(Lineage, ACheckpointOfAnotherLineageIsNamedUnlessTheJournalKnowsIt) {
  const ListedCheckpoint strange = on_disk(100, "another", 5);
  const ListedCheckpoint old = on_disk(100, "", 0);  // of format 1
  EXPECT_THAT(check(whole(), {strange}),
              FailsWith(Code::kBadData, Names("another", "ours", strange.info.name)));
  EXPECT_THAT(check(whole(), {old}), FailsWith(Code::kBadData, Names(old.info.name)));
  JournalContents rebuilt = whole();
  CheckpointEntry entry;
  entry.name = strange.info.name;
  entry.manifest_sha256 = "m";
  rebuilt.checkpoints.push_back(entry);
  EXPECT_TRUE(check(rebuilt, {strange}).is_ok());
  rebuilt.checkpoints.back().manifest_sha256 = "other content";
  EXPECT_THAT(check(rebuilt, {strange}), FailsWith(Code::kBadData));
}

TEST(Lineage, OnlyALostRunIsSaidToBeginAnew) {
  EXPECT_EQ(begins_anew({}), "");
  EXPECT_EQ(begins_anew(whole()), "");
  EXPECT_NE(begins_anew(lost()), "");
}

TEST(Lineage, CommandsThatItAdvisesCanBePasted) {
  const std::string run_dir = "/runs/my $1 run";
  const auto disk = {on_disk(100, "theirs", 20)};
  for (const Status& refused :
       {check_lineage({}, disk, run_dir, false), check_lineage(whole(40), disk, run_dir, false)})
    EXPECT_THAT(refused, FailsWith(Code::kBadData, Advises("--run-dir '" + run_dir + "' ")));
  EXPECT_THAT(check_lineage({}, {}, run_dir, true),
              FailsWith(Code::kBadData, Advises("rm '" + run_dir + "/journal'*")));
}

}  // namespace
}  // namespace lockstep::coordinator
