// Tests when an agent starts its workers, and with what.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "comm/base/file.h"
#include "comm/base/limits.h"
#include "tests/unit/agent/worker_slots_world.h"

namespace lockstep {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST_F(WorkerSlotsTest, OfARankOfMpirunTheFirstProcessEntersTheMpiWorldAndNoneAfterIt) {
  slots_.emplace(WorkerSlotsOptions{.worker = {{program()}},
                                    .run_dir = directory_,
                                    .node = "node1",
                                    .max_crashes = 5,
                                    .is_mpi_rank = true},
                 *logger_);
  const auto killed_after_it_spoke = [&](uint32_t place) {
    const auto path = directory_ + "/logs/worker-" + std::to_string(place) + ".stderr";
    while (last_words(path).empty()) std::this_thread::yield();
    return kill(place).last_words;
  };
  start(slots_->set_wanted(2));
  EXPECT_THAT(killed_after_it_spoke(1), testing::Not(HasSubstr("--mpi")));
  EXPECT_THAT(killed_after_it_spoke(0), HasSubstr("--mpi"));
  std::filesystem::remove(directory_ + "/logs/worker-0.stderr");
  start({0});
  EXPECT_THAT(killed_after_it_spoke(0), testing::Not(HasSubstr("--mpi")));
}

TEST_F(WorkerSlotsTest, WhereSeveralAgentsAreOnAHostNoTwoOfTheirWorkersHaveTheSameLocalRank) {
  slots_.emplace(WorkerSlotsOptions{WorkerLaunch{{program()}}, directory_, "node1", 5, 5, 1, 3},
                 *logger_);
  start(slots_->set_wanted(2));
  EXPECT_EQ(kill(1).local_rank, 4u);
  EXPECT_EQ(kill(0).local_rank, 1u);
  for (const char* rank : {"1", "4"}) {
    const auto words = read_file(directory_ + "/logs/worker-" + rank + ".stderr", 4096);
    ASSERT_TRUE(words.is_ok());
  }
}

TEST_F(WorkerSlotsTest, AWorkersGpuIsThatOfItsLocalRankUnlessTheAgentHasGpusOfItsOwn) {
  const auto gpus = [&](uint32_t first, uint32_t agents_here, uint32_t own_gpus) {
    slots_.emplace(WorkerSlotsOptions{.worker = {{program()}},
                                      .run_dir = directory_,
                                      .node = "n",
                                      .first_local_rank = first,
                                      .agents_here = agents_here,
                                      .own_gpus = own_gpus,
                                      .log_node = "n" + std::to_string(own_gpus)},
                   *logger_);
    start(slots_->set_wanted(2));
    std::string found;
    for (const uint32_t rank : {first, first + agents_here}) {
      const std::string name = "worker-n" + std::to_string(own_gpus) + "-" + std::to_string(rank);
      const std::string path = directory_ + "/logs/" + name + ".stderr";
      while (last_words(path).empty()) std::this_thread::yield();
      const std::string words = last_words(path);
      EXPECT_THAT(words, HasSubstr("--log-name " + name));
      found += words.substr(words.find("--gpu ") + 6, 1);
    }
    kill(1);
    kill(0);
    std::filesystem::remove_all(directory_ + "/logs");
    std::filesystem::create_directory(directory_ + "/logs");
    return found;
  };
  EXPECT_EQ(gpus(1, 3, 0), "14") << "all see the same";
  EXPECT_EQ(gpus(1, 3, 2), "10") << "two of its own";
  EXPECT_EQ(gpus(2, 4, 1), "01") << "one of its own for two workers";
}

// A worker tells its GPU through the descriptor that its arguments name.
TEST_F(WorkerSlotsTest, APlaceKeepsTheGpuOfItsFirstWorkerThatToldIt) {
  const std::string uuid = "0123456789abcdef00000000fedcba98";
  use(9, 0);
  start(slots_->set_wanted(1));
  const std::string path = directory_ + "/logs/worker-0.stderr";
  const auto words_of_next = [&] {
    while (last_words(path).find("in-hand-fd") == std::string::npos) std::this_thread::yield();
    return last_words(path);
  };
  const auto begin_again = [&] {
    kill(0);
    std::filesystem::remove(path);
    start({0});
  };
  words_of_next();
  begin_again();  // it has told nothing
  std::string words = words_of_next();
  EXPECT_THAT(words, testing::Not(HasSubstr("--gpu-uuid")));
  const std::string descriptor = words.substr(words.find("--in-hand-fd ") + 13);
  const std::string memory = "/proc/" + std::to_string(slots_->living().at(0).pid) + "/fd/" +
                             std::to_string(std::stoi(descriptor));
  const int fd = ::open(memory.c_str(), O_RDWR);
  ASSERT_GE(fd, 0) << memory;
  WorkInHand::attach(fd)->is_on_gpu(uuid);
  for (int i = 0; i < 2; ++i) {
    begin_again();
    EXPECT_THAT(words_of_next(), HasSubstr("--gpu-uuid " + uuid));
  }
}

TEST_F(WorkerSlotsTest, ACrashedWorkerWaitsForItsRestartUnderTheSameLocalRank) {
  use(1, 0);
  start(slots_->set_wanted(2));
  now_ms_ += limits::kQuickDeathMs;
  const WorkerEnd end = kill(1);
  EXPECT_EQ(end.local_rank, 1u);
  EXPECT_EQ(end.decision.action, ExitAction::kRestart);
  EXPECT_EQ(end.decision.pause_ms, 0);
  EXPECT_TRUE(slots_->waits_for_restart(1));
  start({1});
  EXPECT_EQ(slots_->living().size(), 2u);
  EXPECT_EQ(kill(1).decision.action, ExitAction::kReport) << "its budget of one is spent";
  EXPECT_EQ(slots_->living().size(), 1u);
}

// The coordinator left out the other worker. Without a restart none would be left.
TEST_F(WorkerSlotsTest, OneIsStartedIfTheOneThatWasToStayDiesWhileTheOtherLeaves) {
  use(5, 0);
  start(slots_->set_wanted(2));
  EXPECT_THAT(slots_->set_wanted(1), IsEmpty());
  EXPECT_EQ(kill(0).decision.action, ExitAction::kReport);
  const WorkerEnd end = leave(0);
  EXPECT_EQ(end.decision.action, ExitAction::kRestart);
  EXPECT_GT(end.decision.pause_ms, 0) << "a goodbye may be under way";
  EXPECT_TRUE(slots_->waits_for_restart(end.place));
  start({end.place});
  EXPECT_EQ(leave(0).decision.action, ExitAction::kExpected) << "once for each death";
}

TEST_F(WorkerSlotsTest, NobodyIsStartedOnceNoneIsWanted) {
  use(5, 0);
  start(slots_->set_wanted(1));
  const WorkerEnd end = kill(0);
  ASSERT_TRUE(slots_->waits_for_restart(end.place));
  EXPECT_THAT(slots_->set_wanted(0), IsEmpty());
  EXPECT_FALSE(slots_->waits_for_restart(end.place));
  EXPECT_TRUE(slots_->all_ended());
}

TEST_F(WorkerSlotsTest, NobodyIsStartedForOneThatDiesOnItsWayOut) {
  use(5, 0);
  start(slots_->set_wanted(3));
  EXPECT_THAT(slots_->set_wanted(1), IsEmpty());
  EXPECT_EQ(kill(2).decision.action, ExitAction::kReport);
  EXPECT_EQ(leave(1).decision.action, ExitAction::kExpected);
  EXPECT_EQ(slots_->living().size(), 1u);
  EXPECT_TRUE(slots_->set_wanted(2).size() == 1);
  slots_->forget_restarts();
  EXPECT_EQ(leave(0).decision.action, ExitAction::kExpected) << "what was surplus is forgotten";
}

TEST_F(WorkerSlotsTest, ItsLastWordsAreItsOwn) {
  use(5, 0);
  start(slots_->set_wanted(1));
  // The shell opens its script by name: only who has spoken has read the first one.
  while (read_file(directory_ + "/logs/worker-0.stderr", 4096)->empty()) std::this_thread::yield();
  ASSERT_TRUE(replace_file(program(), "#!/bin/sh\nexec sleep 1000\n", 0755).is_ok());
  EXPECT_THAT(kill(0).last_words,
              testing::HasSubstr(
                  "--local-rank 0 --gpu 0 --log-name worker-0 --workers-here 1 --node node1"));
  start({0});
  EXPECT_EQ(kill(0).last_words, "") << "the one before it had said something";
}

TEST_F(WorkerSlotsTest, WhatAWorkerHadInHandIsKnownAfterAnyDeathAndTheNextOneBeginsWithNothing) {
  use(5, 0);
  // Its last argument is the descriptor; what is computed is slot 3 of step 2.
  ASSERT_TRUE(replace_file(program(),
                           "#!/bin/sh\nfor fd; do :; done\n"
                           "printf "
                           "'\\001\\000\\000\\000\\000\\000\\000\\000\\000\\000\\000\\000\\000\\000"
                           "\\000\\000\\004\\000\\002' 1<> /proc/self/fd/$fd\n"
                           "echo marked\nexec sleep 1000\n",
                           0755)
                  .is_ok());
  start(slots_->set_wanted(1));
  while (read_file(directory_ + "/logs/worker-0.stderr", 4096)->empty()) std::this_thread::yield();
  EXPECT_THAT(kill(0).in_hand.slots, ElementsAre(SlotInHand{2, 3, /*is_read=*/false}));
  ASSERT_TRUE(replace_file(program(), "#!/bin/sh\nexec sleep 1000\n", 0755).is_ok());
  start({0});
  EXPECT_THAT(kill(0).in_hand.slots, ElementsAre());
}

TEST_F(WorkerSlotsTest, OnlyARunningWorkerOfItsOwnIsKilled) {
  use(5, 0);
  start(slots_->set_wanted(1));
  const pid_t pid = slots_->living().at(0).pid;
  EXPECT_FALSE(slots_->kill(::getpid()));
  EXPECT_TRUE(slots_->kill(pid));
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  const auto end =
      slots_->ended({pid, ProcessEnd::from_wait_status(status)}, false, false, now_ms_);
  EXPECT_EQ(end->decision.cause, ExitCause::kCrash);
  EXPECT_FALSE(slots_->kill(pid)) << "the kernel may give its pid to another process";
}

TEST_F(WorkerSlotsTest, TheBudgetComesBackWithTime) {
  use(1, 0);
  start(slots_->set_wanted(1));
  EXPECT_EQ(kill(0).decision.action, ExitAction::kRestart);
  start({0});
  now_ms_ += limits::kRestartWindowMs;
  EXPECT_EQ(kill(0).decision.action, ExitAction::kRestart);
}

TEST_F(WorkerSlotsTest, CrashesAndPreemptionsHaveSeparateBudgets) {
  use(1, 1);
  start(slots_->set_wanted(1));
  EXPECT_EQ(kill(0, SIGTERM).decision.cause, ExitCause::kPreemption);
  start({0});
  EXPECT_EQ(kill(0, SIGKILL).decision.action, ExitAction::kRestart);
  start({0});
  EXPECT_EQ(kill(0, SIGTERM).decision.action, ExitAction::kReport);
}

TEST_F(WorkerSlotsTest, QuickDeathsWaitLongerAndALongLifeForgivesThem) {
  use(10, 0);
  start(slots_->set_wanted(1));
  EXPECT_EQ(kill(0).decision.pause_ms, 0);
  start({0});
  EXPECT_EQ(kill(0).decision.pause_ms, limits::kRestartPauseFirstMs);
  start({0});
  now_ms_ += limits::kQuickDeathMs;
  EXPECT_EQ(kill(0).decision.pause_ms, 0);
}

// Its shell script marks the memory where WorkInHand::has_been_registered() would.
constexpr char kRegisters[] =
    "#!/bin/sh\nfd=${LOCKSTEP_WORKER##*in_hand_fd=}\n"
    "test -n \"$1\" && printf '\\001' | dd bs=1 seek=24 conv=notrunc of=/proc/self/fd/$fd 2>&-\n"
    "echo \"$LOCKSTEP_WORKER\"\nexec sleep 1000\n";

TEST_F(WorkerSlotsTest, AScriptThatDiesBeforeItRegistersDiesSoonAfterItsStart) {
  ASSERT_TRUE(replace_file(program(), kRegisters, 0755).is_ok());
  const auto use_script = [&](const std::vector<std::string>& words) {
    std::filesystem::remove(directory_ + "/logs/worker-0.stderr");
    slots_.emplace(WorkerSlotsOptions{.worker = {.words = words, .is_script = true},
                                      .run_dir = directory_,
                                      .node = "node1",
                                      .max_crashes = 5},
                   *logger_);
    start(slots_->set_wanted(1));
    while (last_words(directory_ + "/logs/worker-0.stderr").empty()) std::this_thread::yield();
    now_ms_ += limits::kQuickDeathMs;
  };
  use_script({program()});
  kill(0);
  start({0});
  now_ms_ += limits::kQuickDeathMs;
  EXPECT_GT(kill(0).decision.pause_ms, 0) << "the second one in a row";
  use_script({program(), "registers"});
  kill(0);
  start({0});
  while (last_words(directory_ + "/logs/worker-0.stderr").find('\n') == std::string::npos)
    std::this_thread::yield();
  now_ms_ += limits::kQuickDeathMs;
  EXPECT_EQ(kill(0).decision.pause_ms, 0);
}

TEST_F(WorkerSlotsTest, OfScriptsThoseThatHaveNotRegisteredDoNotHearOfTheEnd) {
  ASSERT_TRUE(replace_file(program(), kRegisters, 0755).is_ok());
  const auto lives_on = [&](const std::vector<std::string>& words, bool is_script) {
    std::filesystem::remove(directory_ + "/logs/worker-0.stderr");
    slots_.emplace(WorkerSlotsOptions{.worker = {.words = words, .is_script = is_script},
                                      .run_dir = directory_,
                                      .node = "node1"},
                   *logger_);
    start(slots_->set_wanted(1));
    const pid_t pid = slots_->living().at(0).pid;
    if (is_script)
      while (last_words(directory_ + "/logs/worker-0.stderr").empty()) std::this_thread::yield();
    slots_->signal_unheard(now_ms_ + 1, SIGKILL);
    const bool lives = ::waitpid(pid, nullptr, is_script && words.size() == 1 ? 0 : WNOHANG) == 0;
    if (lives) kill(0);
    return lives;
  };
  EXPECT_FALSE(lives_on({program()}, true));
  EXPECT_TRUE(lives_on({program(), "registers"}, true));
  EXPECT_TRUE(lives_on({program()}, false));
}

TEST_F(WorkerSlotsTest, MoreWorkersGetTheLowestFreeLocalRanks) {
  use(0, 0);
  start(slots_->set_wanted(2));
  EXPECT_THAT(slots_->set_wanted(4), ElementsAre(2u, 3u));
  EXPECT_THAT(slots_->set_wanted(4), IsEmpty());
}

TEST_F(WorkerSlotsTest, WhoIsStillLeavingDoesNotCountForWhatIsWantedAnew) {
  use(5, 5);
  start(slots_->set_wanted(4));
  EXPECT_THAT(slots_->set_wanted(2), IsEmpty());
  EXPECT_THAT(slots_->set_wanted(3), ElementsAre(4u));
}

TEST_F(WorkerSlotsTest, ASurplusWorkerThatDiesIsNotStartedAgain) {
  use(5, 5);
  start(slots_->set_wanted(2));
  slots_->set_wanted(1);
  EXPECT_EQ(kill(1).decision.action, ExitAction::kReport);
  EXPECT_EQ(kill(0).decision.action, ExitAction::kRestart);
}

TEST_F(WorkerSlotsTest, ForgottenRestartsDoNotHoldUpTheEnd) {
  use(5, 5);
  start(slots_->set_wanted(1));
  kill(0);
  EXPECT_FALSE(slots_->all_ended());
  slots_->forget_restarts();
  EXPECT_TRUE(slots_->all_ended());
  EXPECT_FALSE(slots_->waits_for_restart(0));
}

TEST_F(WorkerSlotsTest, AProgramThatIsNotThereIsNotTriedAgain) {
  use(5, 5);
  std::filesystem::remove(program());
  const auto ranks = slots_->set_wanted(1);
  const Status status = slots_->start(0, now_ms_);
  ASSERT_FALSE(status.is_ok());
  const WorkerEnd end = slots_->not_started(0, status, now_ms_);
  EXPECT_EQ(end.decision.action, ExitAction::kReport);
  EXPECT_EQ(end.end.exit_code, 78);
  EXPECT_THAT(end.last_words, testing::HasSubstr(program()));
  EXPECT_TRUE(slots_->all_ended());
}

}  // namespace
}  // namespace lockstep
