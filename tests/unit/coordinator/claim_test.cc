#include "comm/run/directory/claim.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <vector>

#include "comm/base/file.h"
#include "tests/support/fails_with.h"
#include "tests/support/temporary_directory.h"

namespace lockstep::coordinator {
namespace {

class Claims : public ::testing::Test {
 protected:
  Status claim(Term term, const std::string& seat, const std::string& journal = "journal.db") {
    return claim_term(dir_, {term, seat, "node-" + seat, 7, journal});
  }
  void put(const std::string& name, const std::string& text = "") {
    ASSERT_TRUE(replace_file(dir_ + "/" + name, text).is_ok());
  }

  TemporaryDirectory temporary_;
  std::string dir_ = temporary_.path();
};

TEST_F(Claims, WhatWasClaimedIsReadBackAndTheNextTermIsFree) {
  EXPECT_FALSE(newest_claim(dir_)->has_value());
  EXPECT_EQ(newest_claimed(dir_), 0u);
  ASSERT_TRUE(claim(1, "a").is_ok());
  ASSERT_TRUE(claim(2, "b", "journal-2.db").is_ok());
  const auto newest = newest_claim(dir_);
  ASSERT_TRUE(newest.is_ok() && newest->has_value());
  EXPECT_EQ((*newest)->term, 2u);
  EXPECT_EQ((*newest)->seat, "b");
  EXPECT_EQ((*newest)->node, "node-b");
  EXPECT_EQ((*newest)->pid, 7u);
  EXPECT_EQ((*newest)->journal, "journal-2.db");
  EXPECT_TRUE(is_claimed(dir_, 2));
  EXPECT_FALSE(is_claimed(dir_, 3));
}

TEST_F(Claims, TheTenthTermIsNewerThanTheNinth) {
  for (Term term = 1; term <= 10; ++term) ASSERT_TRUE(claim(term, "a").is_ok());
  EXPECT_EQ(newest_claimed(dir_), 10u);
}

TEST_F(Claims, ATermThatSomebodyHasIsRefusedWithTheirNameAndStaysTheirs) {
  ASSERT_TRUE(claim(4, "a").is_ok());
  const Status second = claim(4, "b");
  EXPECT_THAT(second, FailsWith(Code::kRefused, Names("node-a")));
  EXPECT_EQ((*newest_claim(dir_))->seat, "a");
}

TEST_F(Claims, OfProcessesThatClaimTheSameTermExactlyOneGetsIt) {
  constexpr int kProcesses = 8;
  constexpr Term kTerms = 25;
  std::vector<pid_t> children;
  for (int i = 0; i < kProcesses; ++i) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      int won = 0;
      for (Term term = 1; term <= kTerms; ++term)
        if (claim(term, std::to_string(i)).is_ok()) ++won;
      ::_exit(won);
    }
    children.push_back(pid);
  }
  int won = 0;
  for (const pid_t pid : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(pid, &status, 0), pid);
    ASSERT_TRUE(WIFEXITED(status));
    won += WEXITSTATUS(status);
  }
  EXPECT_EQ(won, static_cast<int>(kTerms));
  for (const auto& entry : std::filesystem::directory_iterator(dir_))
    EXPECT_EQ(entry.path().filename().string().find("tmp"), std::string::npos) << entry.path();
}

TEST_F(Claims, ADamagedClaimIsAnErrorAndNotNobodys) {
  ASSERT_TRUE(claim(1, "a").is_ok());
  put("terms/2", "{\"seat\":");
  EXPECT_EQ(newest_claim(dir_).status().code(), Code::kBadData);
  EXPECT_TRUE(is_claimed(dir_, 2));
  put("terms/2", R"({"seat":"b","node":"n","pid":1,"journal":"../elsewhere.db"})");
  EXPECT_EQ(newest_claim(dir_).status().code(), Code::kBadData);
}

TEST_F(Claims, TheNewestJournalIsTheLastOneThatIsWhole) {
  EXPECT_EQ(journal_path(dir_), dir_ + "/journal.db");
  put("journal.db");
  ASSERT_TRUE(claim(1, "a").is_ok());
  ASSERT_TRUE(claim(2, "b", "journal-2.db").is_ok());
  EXPECT_EQ(journal_path(dir_), dir_ + "/journal.db") << "the copy is not there yet";
  put("journal-2.db");
  EXPECT_EQ(journal_path(dir_), dir_ + "/journal-2.db");
  ASSERT_TRUE(claim(3, "b", "journal-2.db").is_ok());
  ASSERT_TRUE(claim(4, "c", "journal-4.db").is_ok());
  EXPECT_EQ(journal_path(dir_), dir_ + "/journal-2.db");
}

TEST_F(Claims, EveryJournalHasALockOfItsOwn) {
  EXPECT_EQ(lock_path("/run/a/journal.db"), "/run/a/lock");
  EXPECT_EQ(lock_path("/run/a/journal-12.db"), "/run/a/lock-12");
  EXPECT_EQ(lock_path("/run/my-runs/journal.db"), "/run/my-runs/lock");
}

}  // namespace
}  // namespace lockstep::coordinator
