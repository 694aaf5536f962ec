// The rules of transport.h, held against both implementations, and against Asio with TLS.
#include "comm/rpc/transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "comm/base/limits.h"
#include "comm/rpc/asio_transport.h"
#include "comm/rpc/memory_transport.h"
#include "tests/support/fails_with.h"
#include "tests/unit/rpc/tls_support.h"

namespace lockstep::rpc {
namespace {

using wire::Frame;
using wire::FrameKind;

class World {
 public:
  virtual ~World() = default;
  virtual Transport& transport() = 0;
  virtual bool run_until(const std::function<bool()>& done) = 0;
};

class AsioWorld final : public World {
 public:
  AsioWorld() = default;
  explicit AsioWorld(const std::string& certificates)
      : transport_(loop_, identity(certificates, *logger_)) {}
  Transport& transport() override { return transport_; }
  bool run_until(const std::function<bool()>& done) override {
    const int64_t until_ms = loop_.now_ms() + 30'000;
    while (!done() && loop_.now_ms() < until_ms) loop_.run_one(1'000);
    return done();
  }

 private:
  std::unique_ptr<Logger> logger_ = null_logger();
  AsioLoop loop_;
  AsioTransport transport_{loop_};
};

class MemoryWorld final : public World {
 public:
  Transport& transport() override { return *transport_; }
  bool run_until(const std::function<bool()>& done) override {
    return loop_.run_until(done, 30'000);
  }

 private:
  SimLoop loop_;
  MemoryNetwork network_{loop_};
  std::unique_ptr<MemoryTransport> transport_ = network_.transport("node");
};

// One end of a connection, and everything that was called on it.
struct End {
  std::shared_ptr<Connection> connection;
  std::vector<Frame> frames;
  std::vector<Status> closes;

  void listen() {
    connection->set_handlers({.on_frame = [this](Frame&& f) { frames.push_back(std::move(f)); },
                              .on_close = [this](const Status& s) { closes.push_back(s); }});
  }
};

enum class Kind { kAsio, kTls, kMemory };

class TransportRules : public testing::TestWithParam<Kind> {
 protected:
  TransportRules() {
    if (GetParam() == Kind::kAsio) {
      world_ = std::make_unique<AsioWorld>();
    } else if (GetParam() == Kind::kTls) {
      const std::string certificates = empty_directory("transport-tls");
      issue(certificates);
      world_ = std::make_unique<AsioWorld>(certificates);
      std::filesystem::remove_all(certificates);
    } else {
      world_ = std::make_unique<MemoryWorld>();
    }
    auto listener = world_->transport().listen(
        {"127.0.0.1", 0},
        [this](std::shared_ptr<Connection> c) { far_.connection = std::move(c); });
    EXPECT_TRUE(listener.is_ok());
    listener_ = std::move(listener).value();
  }

  void connect() {
    world_->transport().connect(listener_->address(), 5'000, [this](auto result) {
      ASSERT_TRUE(result.is_ok()) << result.status().message();
      near_.connection = std::move(result).value();
    });
    EXPECT_FALSE(near_.connection) << "no handler inside connect()";
    ASSERT_TRUE(run_until([&] { return near_.connection && far_.connection; }));
  }

  void connect_and_listen() {
    connect();
    near_.listen();
    far_.listen();
  }

  bool run_until(const std::function<bool()>& done) { return world_->run_until(done); }

  // Runs until everything that was posted before has run.
  void settle() {
    bool done = false;
    world_->transport().loop().call_after(20, [&] { done = true; });
    ASSERT_TRUE(run_until([&] { return done; }));
  }

  std::unique_ptr<World> world_;
  std::unique_ptr<Listener> listener_;
  End near_;
  End far_;
};

Frame envelope(std::string payload) {
  return {FrameKind::kEnvelope, std::move(payload)};
}

TEST_P(TransportRules, FramesArriveInOrderBothWays) {
  connect_and_listen();
  for (int i = 0; i < 100; ++i) {
    near_.connection->send(envelope("n" + std::to_string(i)));
    far_.connection->send(envelope("f" + std::to_string(i)));
  }
  EXPECT_TRUE(near_.frames.empty()) << "no handler inside send()";
  ASSERT_TRUE(run_until([&] { return near_.frames.size() == 100 && far_.frames.size() == 100; }));
  for (size_t i = 0; i < 100; ++i) {
    EXPECT_EQ(near_.frames[i].payload, "f" + std::to_string(i));
    EXPECT_EQ(far_.frames[i].payload, "n" + std::to_string(i));
  }
}

// The start of a generation, which is large, comes between heartbeats, which are not.
TEST_P(TransportRules, AFrameThatTwoConnectionsShareArrivesBetweenItsNeighbours) {
  connect_and_listen();
  for (End* end : {&near_, &far_}) end->connection->set_frame_limit(limits::kFrameBytes);
  const wire::SharedFrame shared = wire::share_frame(envelope(std::string(3'000'000, 's')));
  for (int i = 0; i < 3; ++i) {
    for (End* end : {&near_, &far_}) {
      end->connection->send(envelope("before"));
      end->connection->send_shared(shared);
      end->connection->send(envelope("after"));
    }
  }
  ASSERT_TRUE(run_until([&] { return near_.frames.size() == 9 && far_.frames.size() == 9; }));
  for (const End* end : {&near_, &far_}) {
    for (size_t i = 0; i < 9; i += 3) {
      EXPECT_EQ(end->frames[i].payload, "before");
      EXPECT_EQ(end->frames[i + 1], wire::unshare_frame(shared));
      EXPECT_EQ(end->frames[i + 2].payload, "after");
    }
  }
  EXPECT_EQ(near_.connection->queued_bytes(), 0u);
}

TEST_P(TransportRules, ClosingDeliversWhatWasQueuedThenTheEnd) {
  connect_and_listen();
  far_.connection->set_frame_limit(limits::kFrameBytes);
  const std::string big(4'000'000, 'x');
  for (int i = 0; i < 4; ++i) near_.connection->send(envelope(big));
  near_.connection->close();
  EXPECT_FALSE(near_.connection->is_open());
  ASSERT_TRUE(run_until([&] { return !far_.closes.empty(); }));
  EXPECT_EQ(far_.frames.size(), 4u);
  EXPECT_EQ(far_.closes[0].code(), Code::kUnavailable);
  settle();
  EXPECT_EQ(far_.closes.size(), 1u);
  EXPECT_TRUE(near_.closes.empty()) << "no callback after close()";
}

TEST_P(TransportRules, DroppingTheConnectionIsClosingIt) {
  connect_and_listen();
  near_.connection.reset();
  ASSERT_TRUE(run_until([&] { return !far_.closes.empty(); }));
}

TEST_P(TransportRules, AfterCloseNothingIsCalledThoughFramesAreOnTheWay) {
  connect_and_listen();
  near_.connection->send(envelope("1"));
  near_.connection->send(envelope("2"));
  far_.connection->set_handlers(
      {.on_frame =
           [this](Frame&& f) {
             far_.frames.push_back(std::move(f));
             far_.connection->close();
           },
       .on_close = [this](const Status& s) { far_.closes.push_back(s); }});
  ASSERT_TRUE(run_until([&] { return !near_.closes.empty(); }));
  EXPECT_EQ(far_.frames.size(), 1u);
  EXPECT_TRUE(far_.closes.empty());
}

TEST_P(TransportRules, FramesWaitForTheFirstHandlers) {
  connect();
  near_.listen();
  near_.connection->send(envelope("early"));
  settle();
  far_.listen();
  ASSERT_TRUE(run_until([&] { return far_.frames.size() == 1; }));
  EXPECT_EQ(far_.frames[0].payload, "early");
}

TEST_P(TransportRules, AFrameAboveTheLimitEndsTheConnectionWithOneSentence) {
  connect_and_listen();
  near_.connection->send(envelope(std::string(limits::kFrameBytesBeforeAuth + 1, 'x')));
  ASSERT_TRUE(run_until([&] { return !far_.closes.empty() && !near_.closes.empty(); }));
  EXPECT_EQ(far_.closes[0],
            Status(Code::kRefused, "a frame of 4097 bytes was announced, the limit is 4096"));
  EXPECT_TRUE(far_.frames.empty());
}

TEST_P(TransportRules, APeerThatDoesNotReadIsCutWhenItsQueueIsFull) {
  connect();
  near_.listen();
  const std::string big(16'000'000, 'x');
  for (int i = 0; i < 10; ++i) near_.connection->send(envelope(big));
  EXPECT_FALSE(near_.connection->is_open());
  EXPECT_TRUE(near_.closes.empty()) << "no handler inside send()";
  ASSERT_TRUE(run_until([&] { return !near_.closes.empty(); }));
  EXPECT_THAT(near_.closes[0].message(), Says("read"));
  settle();
  EXPECT_EQ(near_.closes.size(), 1u);
}

TEST_P(TransportRules, AnEndBeforeTheFirstHandlersIsStillReported) {
  connect();
  far_.connection->send(envelope("x"));
  for (int i = 0; i < 10; ++i) near_.connection->send(envelope(std::string(16'000'000, 'x')));
  settle();
  near_.listen();
  ASSERT_TRUE(run_until([&] { return !near_.closes.empty(); }));
}

TEST_P(TransportRules, NobodyListeningIsUnavailable) {
  const Address nobody = listener_->address();
  listener_.reset();
  Status status;
  world_->transport().connect(nobody, 5'000, [&](auto result) { status = result.status(); });
  ASSERT_TRUE(run_until([&] { return !status.is_ok(); }));
  EXPECT_THAT(status, FailsWith(Code::kUnavailable, Names(to_string(nobody))));
}

TEST_P(TransportRules, ATakenPortIsRefusedWithTheAddress) {
  const auto second = world_->transport().listen(listener_->address(), [](auto) {});
  ASSERT_FALSE(second.is_ok());
  EXPECT_THAT(second,
              FailsWith(Code::kConfig, Names(to_string(listener_->address())), Says("taken")));
}

TEST_P(TransportRules, ACancelledTimerDoesNotRun) {
  Loop& loop = world_->transport().loop();
  int ran = 0;
  const TimerId second = loop.call_after(10, [&] { ran += 10; });
  loop.call_after(5, [&] {
    ran += 1;
    loop.cancel(second);
  });
  settle();
  loop.cancel(second);
  EXPECT_EQ(ran, 1);
}

INSTANTIATE_TEST_SUITE_P(Asio, TransportRules, testing::Values(Kind::kAsio));
INSTANTIATE_TEST_SUITE_P(Tls, TransportRules, testing::Values(Kind::kTls));
INSTANTIATE_TEST_SUITE_P(Memory, TransportRules, testing::Values(Kind::kMemory));

TEST(AsioTransport, NeverListensOnEveryAddress) {
  AsioLoop loop;
  AsioTransport transport(loop);
  for (const char* every : {"0.0.0.0", "::"}) {
    const auto listener = transport.listen({every, 0}, [](auto) {});
    EXPECT_THAT(listener, FailsWith(Code::kConfig, Names(every))) << every;
  }
}

TEST(AsioTransport, ANameThatLeadsNowhereIsToldLikeAnyOtherEnd) {
  AsioLoop loop;
  AsioTransport transport(loop);
  Status status;
  // No name has an empty part, so no server is asked.
  transport.connect({"node-1..example", 80}, 30'000,
                    [&](auto result) { status = result.status(); });
  EXPECT_TRUE(status.is_ok()) << "no handler inside connect()";
  while (status.is_ok() && loop.run_one(30'000)) {
  }
  EXPECT_EQ(status.code(), Code::kUnavailable);
}

TEST(AsioTransport, ALoopDestroyedWithWorkInFlightLeavesNothingBehind) {
  auto loop = std::make_unique<AsioLoop>();
  AsioTransport transport(*loop);
  auto kept = std::make_shared<int>(1);
  transport.connect({"127.0.0.1", 9}, 60'000, [kept](auto) {});
  loop->call_after(60'000, [kept] {});
  loop->post([kept] {});
  loop.reset();
  EXPECT_EQ(kept.use_count(), 1);
}

TEST(AsioLoop, OneThatHadNothingToDoRunsWhatComesLater) {
  AsioLoop loop;
  EXPECT_FALSE(loop.run_one(1));
  bool has_run = false;
  loop.call_after(1, [&] { has_run = true; });
  EXPECT_TRUE(loop.run_one(60'000));
  EXPECT_TRUE(has_run);
}

TEST(AsioLoop, AStopBeforeRunCounts) {
  AsioLoop loop;
  loop.stop();
  loop.run();
  loop.post([&] { loop.stop(); });
  loop.run();
}

}  // namespace
}  // namespace lockstep::rpc
