#include "data/base/guarded_range.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <thread>
#include <vector>

#include "tests/support/files.h"
#include "tests/support/idx_writer.h"
#include "tests/support/temporary_directory.h"

namespace lockstep::data {
namespace {

constexpr size_t kPages = 5;

// A file of whole pages, all of ones, mapped. Cutting it off leaves a mapping without a file below.
class Guarded : public testing::Test {
 protected:
  void SetUp() override {
    write_file(path_, std::string(bytes_, '\1'));
    fd_ = ::open(path_.c_str(), O_RDWR | O_CLOEXEC);
    data_ = static_cast<uint8_t*>(::mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, fd_, 0));
    ASSERT_NE(data_, MAP_FAILED);
  }
  void TearDown() override {
    ::munmap(data_, bytes_);
    ::close(fd_);
  }

  void cut_to(size_t pages) { ASSERT_EQ(::ftruncate(fd_, static_cast<off_t>(pages * page_)), 0); }
  size_t sum() const { return std::accumulate(data_, data_ + bytes_, size_t{0}); }

  const size_t page_ = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const size_t bytes_ = kPages * page_;
  TemporaryDirectory dir_;
  const std::string path_ = dir_.path("file");
  int fd_ = -1;
  uint8_t* data_ = nullptr;
};

TEST_F(Guarded, WhatWasCutOffReadsAsZerosAndIsTold) {
  const GuardedRange range(data_, bytes_);
  EXPECT_EQ(sum(), bytes_);
  EXPECT_FALSE(range.is_damaged());
  cut_to(2);
  EXPECT_EQ(sum(), 2 * page_);
  EXPECT_TRUE(range.is_damaged());
}

TEST_F(Guarded, TheRangeBesideItIsNotDamaged) {
  const GuardedRange front(data_, 2 * page_);
  const GuardedRange back(data_ + 2 * page_, 3 * page_);
  cut_to(2);
  EXPECT_EQ(sum(), 2 * page_);
  EXPECT_FALSE(front.is_damaged());
  EXPECT_TRUE(back.is_damaged());
}

TEST_F(Guarded, AnEntryIsUsedAgainAndForgetsTheDamage) {
  cut_to(2);
  {
    const GuardedRange range(data_, bytes_);
    EXPECT_EQ(sum(), 2 * page_);
  }
  const GuardedRange again(data_, bytes_);
  EXPECT_FALSE(again.is_damaged());
}

TEST_F(Guarded, MovesWithItsOwner) {
  GuardedRange first(data_, bytes_);
  GuardedRange second;
  second = std::move(first);
  const GuardedRange third(std::move(second));
  cut_to(1);
  EXPECT_EQ(sum(), page_);
  EXPECT_TRUE(third.is_damaged());
}

TEST_F(Guarded, EveryThreadThatReadsGoesOn) {
  const GuardedRange range(data_, bytes_);
  cut_to(2);
  std::vector<size_t> sums(8);
  std::vector<std::thread> readers;
  for (size_t& result : sums)
    readers.emplace_back([this, &result] {
      sigset_t blocked;
      sigfillset(&blocked);
      keep_fault_signals(blocked);
      pthread_sigmask(SIG_SETMASK, &blocked, nullptr);
      result = sum();
    });
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(sums, std::vector<size_t>(8, 2 * page_));
}

using GuardedDeathTest = Guarded;

// The sanitizers' own handler comes after ours and ends the process with a status of its own.
bool died_of_it(int status) {
  return testing::KilledBySignal(SIGBUS)(status) || (WIFEXITED(status) && WEXITSTATUS(status) != 0);
}

TEST_F(GuardedDeathTest, ElsewhereItKillsAsBefore) {
  const GuardedRange range(data_, 2 * page_);
  cut_to(3);
  EXPECT_EXIT(std::exit(sum() > bytes_ ? 1 : 0), died_of_it, "");
}

TEST_F(GuardedDeathTest, WhatSomebodySendsKillsAsBefore) {
  const GuardedRange range(data_, bytes_);
  EXPECT_EXIT((::raise(SIGBUS), std::exit(0)), died_of_it, "");
}

// Where the fault is to be, for a handler in a child.
const void* volatile told_at = nullptr;

// In a process of its own, of whose directory nothing is to be left.
template <typename InstallFn>
[[noreturn]] void read_with_a_handler_before(const TemporaryDirectory& dir, const uint8_t* data,
                                             size_t page, const InstallFn& install) {
  std::filesystem::remove_all(dir.path());
  install();
  const GuardedRange range(data, 2 * page);
  const size_t sum = std::accumulate(data, data + 4 * page, size_t{0});
  std::_Exit(sum > 0 ? 1 : 2);  // no handler was told
}

TEST_F(GuardedDeathTest, AHandlerThatWasThereBeforeIsAsked) {
  // A new process, in which no range has installed anything.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  cut_to(3);
  EXPECT_EXIT(read_with_a_handler_before(dir_, data_, page_,
                                         [] { std::signal(SIGBUS, [](int) { std::_Exit(41); }); }),
              testing::ExitedWithCode(41), "");
}

TEST_F(GuardedDeathTest, AHandlerThatWasThereBeforeIsToldTheAddress) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  cut_to(3);
  told_at = data_ + 3 * page_;
  EXPECT_EXIT(read_with_a_handler_before(dir_, data_, page_,
                                         [] {
                                           struct sigaction action {};
                                           action.sa_flags = SA_SIGINFO;
                                           action.sa_sigaction = [](int, siginfo_t* info, void*) {
                                             std::_Exit(info->si_addr == told_at ? 42 : 43);
                                           };
                                           ::sigaction(SIGBUS, &action, nullptr);
                                         }),
              testing::ExitedWithCode(42), "");
}

TEST_F(GuardedDeathTest, AfterTheRangeIsGoneItKills) {
  { const GuardedRange range(data_, bytes_); }
  cut_to(3);
  EXPECT_EXIT(std::exit(sum() > bytes_ ? 1 : 0), died_of_it, "");
}

}  // namespace
}  // namespace lockstep::data
