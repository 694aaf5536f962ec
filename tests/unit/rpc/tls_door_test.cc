// Tests which side begins TLS, and when. The clock is the test's, the sockets are real.
#include "comm/rpc/tls_door.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <string>
#include <vector>

#include "comm/base/clock.h"
#include "comm/rpc/memory_transport.h"

namespace lockstep::rpc {
namespace {

constexpr size_t kMostCallers = 100;
constexpr int kInHand = static_cast<int>(limits::kTlsHandshakes);

class Door : public testing::Test {
 protected:
  struct Entered {
    int who;
    TlsDoor::Turn turn;
  };

  void SetUp() override {
    door_ = std::make_shared<TlsDoor>(
        loop_, "token",
        [this](boost::asio::ip::tcp::socket socket, Result<TlsDoor::Turn> turn) {
          char who = 0;
          (void)::recv(socket.native_handle(), &who, 1, MSG_DONTWAIT);
          if (turn.is_ok()) {
            entered_.push_back({who, *turn});
          } else {
            turned_away_.push_back(turn.status().message());
          }
        },
        kMostCallers);
  }

  void TearDown() override {
    door_->close();
    for (const int fd : ends_) ::close(fd);
  }

  // The caller's end of a connection that has just come.
  int knock() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    ends_.push_back(ends[0]);
    door_->knock({context_, boost::asio::ip::tcp::v4(), ends[1]});
    return ends[0];
  }

  static void speak(int end, int who) {
    const char byte = static_cast<char>(who);
    ASSERT_EQ(::send(end, &byte, 1, MSG_NOSIGNAL), 1);
  }

  // Knocks and speaks; sockets are heard in this order.
  int come(int who) {
    const int end = knock();
    speak(end, who);
    hear();
    return end;
  }

  // The same with a knock first.
  int come_knocking(int who, const std::string& knock_bytes) {
    const int end = knock();
    EXPECT_EQ(::send(end, knock_bytes.data(), knock_bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(knock_bytes.size()));
    speak(end, who);
    hear();
    return end;
  }
  static std::string right_knock() { return make_knock("token", SystemClock().wall_ms()); }

  void hear() {
    context_.restart();
    context_.poll();
  }

  void settle() {
    hear();
    loop_.run_for(0);
  }

  void fill_hands() {
    for (int i = 0; i < kInHand; ++i) {
      come(i);
      settle();
    }
    ASSERT_EQ(entered_.size(), limits::kTlsHandshakes);
  }

  std::vector<int> after_filling() const {
    std::vector<int> who;
    for (size_t i = limits::kTlsHandshakes; i < entered_.size(); ++i)
      who.push_back(entered_[i].who);
    return who;
  }

  SimLoop loop_;
  boost::asio::io_context context_;
  std::shared_ptr<TlsDoor> door_;
  std::vector<Entered> entered_;
  std::vector<std::string> turned_away_;
  std::vector<int> ends_;
};

TEST_F(Door, ATurnOfTheLoopLetsInOne) {
  for (int i = 0; i < 3; ++i) come(i);
  EXPECT_TRUE(entered_.empty());
  for (size_t i = 1; i <= 3; ++i) {
    ASSERT_TRUE(loop_.run_one());
    EXPECT_EQ(entered_.size(), i);
  }
}

TEST_F(Door, OnlySoManyAreInHandAndTheNewestIsNext) {
  fill_hands();
  for (const int who : {71, 72, 73}) come(who);
  settle();
  EXPECT_TRUE(after_filling().empty());
  entered_[5].turn.reset();  // proven, or gone
  settle();
  EXPECT_EQ(after_filling(), (std::vector<int>{73}));
  entered_[6].turn.reset();
  settle();
  EXPECT_EQ(after_filling(), (std::vector<int>{73, 72}));
}

TEST_F(Door, WhoStopsInTheMiddleHoldsNobodyUpForLong) {
  fill_hands();
  come(71);
  settle();
  loop_.run_for(limits::kTlsPromptMs - 1);
  EXPECT_TRUE(after_filling().empty());
  loop_.run_for(1);
  EXPECT_EQ(after_filling(), (std::vector<int>{71}));
}

TEST_F(Door, WhoSaysNothingIsTurnedAwayAtTheDeadlineAndHoldsNobodyUp) {
  for (size_t i = 0; i < kMostCallers - 1; ++i) knock();
  come(7);
  settle();
  EXPECT_EQ(entered_.size(), 1u);
  loop_.run_for(limits::kAuthDeadlineMs);
  ASSERT_EQ(turned_away_.size(), kMostCallers - 1);
  EXPECT_EQ(turned_away_[0], "it did not begin TLS within 5000 ms");
}

TEST_F(Door, AmongTooManyTheOldestOfTheSilentMakesRoom) {
  const int oldest = knock();
  loop_.run_for(40);
  for (size_t i = 1; i < kMostCallers; ++i) knock();
  EXPECT_TRUE(turned_away_.empty());
  come(7);
  settle();
  EXPECT_EQ(turned_away_,
            std::vector<std::string>{
                "it had to make room after 40 ms: more than 100 connections wait to begin TLS"});
  char byte;
  EXPECT_EQ(::recv(oldest, &byte, 1, 0), 0) << "its connection is closed";
  EXPECT_EQ(entered_.size(), 1u);
}

TEST_F(Door, WhereAllHaveSpokenTheOldestOfThemMakesRoom) {
  fill_hands();
  std::vector<int> waiting;
  for (size_t i = 0; i < kMostCallers; ++i) waiting.push_back(come(1));
  come(2);
  EXPECT_EQ(turned_away_.size(), 1u);
  char byte;
  EXPECT_EQ(::recv(waiting[0], &byte, 1, 0), 0);
  EXPECT_EQ(::recv(waiting[1], &byte, 1, 0), -1) << "still open";
}

TEST_F(Door, WhoHungUpMeanwhileGetsNoTurn) {
  fill_hands();
  ::shutdown(come(71), SHUT_RDWR);
  come(72);
  entered_[0].turn.reset();
  entered_[1].turn.reset();
  settle();
  EXPECT_EQ(after_filling(), (std::vector<int>{72}));
  EXPECT_EQ(turned_away_, std::vector<std::string>{"it hung up while it waited for its turn"});
}

// A flood of half handshakes: all turns of strangers are taken, and hundreds wait.
TEST_F(Door, WhoHasKnockedWaitsForNoStranger) {
  fill_hands();
  for (int i = 0; i < 20; ++i) come(1);
  come_knocking(71, right_knock());
  come(2);
  settle();
  EXPECT_EQ(after_filling(), (std::vector<int>{71}));
}

TEST_F(Door, AWrongKnockIsTakenOffAndItsCallerIsAStranger) {
  fill_hands();
  const std::string once = right_knock();
  come_knocking(71, once);
  come_knocking(72, once);                                          // overheard
  come_knocking(73, make_knock("guess", SystemClock().wall_ms()));  // guessed
  come_knocking(74, make_knock("token", SystemClock().wall_ms() - limits::kKnockMs - 5'000));
  settle();
  EXPECT_EQ(after_filling(), (std::vector<int>{71}));
  for (size_t i = 0; i < limits::kTlsHandshakes; ++i) entered_[i].turn.reset();
  settle();
  EXPECT_EQ(after_filling(), (std::vector<int>{71, 74, 73, 72})) << "TLS begins behind the knock";
}

TEST_F(Door, AmongTooManyStrangersMakeRoomBeforeThoseWhoHaveKnocked) {
  fill_hands();
  std::vector<int> own;
  for (int i = 0; i < kInHand; ++i) come_knocking(80, right_knock());  // all turns of the line
  settle();
  own.push_back(come_knocking(81, right_knock()));
  for (size_t i = 0; i < kMostCallers + 5; ++i) come(1);
  char byte;
  EXPECT_EQ(::recv(own[0], &byte, 1, 0), -1) << "still open";
  EXPECT_EQ(turned_away_.size(), 6u);
}

// Many are accepted in one turn of the loop, before a word of any of them is read.
TEST_F(Door, AmongTooManyStrangersWhoHasJustComeIsHeardFirst) {
  fill_hands();
  for (size_t i = 0; i < kMostCallers; ++i) come(1);
  const int own = knock();
  const std::string word = right_knock() + 'G';
  ASSERT_EQ(::send(own, word.data(), word.size(), MSG_NOSIGNAL), static_cast<ssize_t>(word.size()));
  for (int i = 0; i < 5; ++i) knock();
  settle();
  EXPECT_EQ(after_filling(), (std::vector<int>{'G'}));
  EXPECT_EQ(turned_away_.size(), 6u);
}

TEST_F(Door, WhoKeepsSilentMakesRoomBeforeStrangers) {
  const int silent = knock();
  loop_.run_for(limits::kTlsPromptMs);
  fill_hands();
  std::vector<int> strangers;
  for (size_t i = 1; i < kMostCallers; ++i) strangers.push_back(come(1));
  EXPECT_TRUE(turned_away_.empty());
  knock();
  char byte;
  EXPECT_EQ(::recv(silent, &byte, 1, 0), 0) << "its connection is closed";
  EXPECT_EQ(::recv(strangers[0], &byte, 1, 0), -1) << "still open";
}

TEST_F(Door, ATurnMayOutliveTheDoorAndNobodyElseDoes) {
  const int silent = knock();
  fill_hands();
  come(71);
  door_->close();
  entered_[0].turn.reset();
  door_.reset();
  entered_.pop_back();
  settle();
  EXPECT_TRUE(turned_away_.empty());
  char byte;
  EXPECT_EQ(::recv(silent, &byte, 1, 0), 0) << "its connection is closed";
  SetUp();
}

}  // namespace
}  // namespace lockstep::rpc
