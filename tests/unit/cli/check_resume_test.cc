#include "deploy/cli/run/check_resume.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "comm/run/directory/run_lock.h"
#include "coordinator/journal/journal_sqlite.h"
#include "coordinator/state/identity.h"
#include "tests/support/fails_with.h"
#include "tests/support/temporary_directory.h"

namespace lockstep {
namespace {

using testing::HasSubstr;

class CheckResume : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(directory_ + "/checkpoints");
    job_.mutable_train()->set_global_batch(8);
    job_.mutable_train()->set_slots(2);
    job_.mutable_train()->set_max_steps(5);
    facts_.set_train_samples(100);
  }

  // The journal of a run with the identity of job_ and facts_, and no checkpoint.
  void begin_run() {
    const auto journal = coordinator::open_sqlite_journal(directory_ + "/journal.db");
    ASSERT_TRUE(journal.is_ok());
    std::vector<coordinator::JournalEntry> entries;
    for (const auto& entry : coordinator::identity_of(job_, facts_)) entries.push_back(entry);
    ASSERT_TRUE((*journal)->commit(entries, 0).is_ok());
  }

  TemporaryDirectory temporary_;
  std::string directory_ = temporary_.path();
  wire::JobSpec job_;
  wire::DataFacts facts_;
};

TEST_F(CheckResume, ARunThatNeverGotAsFarAsAJournalMayBegin) {
  EXPECT_TRUE(check_resume(directory_, job_, facts_).is_ok());
  EXPECT_TRUE(std::filesystem::is_empty(directory_ + "/checkpoints"));
  EXPECT_FALSE(std::filesystem::exists(directory_ + "/journal.db"));
}

TEST_F(CheckResume, TheSameRunMayGoOnAndIsNotDoneYet) {
  begin_run();
  const auto check = check_resume(directory_, job_, facts_);
  ASSERT_TRUE(check.is_ok()) << check.status().message();
  EXPECT_FALSE(check->is_done);
}

TEST_F(CheckResume, AnotherIdentityIsRefusedWithBothValues) {
  begin_run();
  job_.set_seed(99);
  const auto check = check_resume(directory_, job_, facts_);
  EXPECT_THAT(check, FailsWith(Code::kUsage, Names("seed is 0")));
}

TEST_F(CheckResume, ADirectoryWhereACoordinatorWorksIsLeftAlone) {
  begin_run();
  const auto lock = RunLock::take(directory_ + "/journal.db");
  ASSERT_TRUE(lock.is_ok());
  EXPECT_THAT(check_resume(directory_, job_, facts_).status().message(), HasSubstr("in use"));
}

}  // namespace
}  // namespace lockstep
