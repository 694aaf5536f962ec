// The state on its way from one member to another, over loopback.
#include "worker/runner/state_transfer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "comm/base/limits.h"
#include "comm/collectives/forwarding.h"
#include "comm/collectives/loopback/loopback.h"
#include "tests/support/fails_with.h"
#include "tests/unit/run/checkpoint/test_state.h"

namespace lockstep {
namespace {

using testing::TestState;

constexpr Generation kGeneration = 3;
constexpr uint32_t kRoot = 1;

// More than one chunk, and no whole number of them.
TestState make_state(unsigned number) {
  TestState state = TestState::small(number);
  state.add(StateSection::kParameter, "large.weight", DType::kU8,
            {static_cast<int64_t>(2 * limits::kTransferChunkBytes + 17)});
  state.add(StateSection::kParameter, "nothing.weight", DType::kF32, {0});
  state.fill(number);
  return state;
}

std::string bytes_of(TestState& state) {
  std::string bytes;
  for (const StateTensor& t : state.tensors())
    bytes.append(reinterpret_cast<const char*>(t.data), t.bytes);
  return bytes;
}

// Passes everything on, but one bit of the n-th broadcast arrives as another.
class Damaging final : public Forwarding<Collective> {
 public:
  Damaging(std::unique_ptr<Collective> inner, int broadcast)
      : Forwarding(std::move(inner)), left_(broadcast) {}
  Status broadcast(const Tag& tag, std::span<std::byte> data, uint32_t root) override {
    LOCKSTEP_RETURN_IF_ERROR(Forwarding::broadcast(tag, data, root));
    if (left_-- == 0) data[data.size() / 3] ^= std::byte{1};
    return Status::ok();
  }

 private:
  int left_;
};

struct Outcome {
  Status sent;
  Status passed;
  Result<ReceivedState> received = Status(Code::kInternal, "did not run");
};

// Rank 0 receives, 1 sends, 2 stands by. A rank that fails ends the transfer for the others.
Outcome transfer(TestState& source, int damaged_broadcast = -1) {
  std::vector<std::unique_ptr<GradientBuffer>> buffers;
  std::vector<GradientBuffer*> raw;
  for (int r = 0; r < 3; ++r) {
    buffers.push_back(make_plain_buffer({16, 16, 32}, 1));
    raw.push_back(buffers.back().get());
  }
  auto ranks = make_loopback(kGeneration, raw);
  ranks[0] = std::make_unique<Damaging>(std::move(ranks[0]), damaged_broadcast);
  Outcome outcome;
  std::vector<std::thread> threads;
  threads.emplace_back([&] {
    outcome.received = receive_state(*ranks[0], kGeneration, kRoot);
    if (!outcome.received.is_ok()) ranks[0]->abort();
  });
  threads.emplace_back([&] {
    const StateOrigin origin{{42, Phase::kEval}, "step-0000000040-g1-m4", {}};
    outcome.sent = send_state(*ranks[1], kGeneration, origin, source.tensors());
  });
  threads.emplace_back([&] { outcome.passed = pass_state(*ranks[2], kGeneration, kRoot); });
  for (std::thread& thread : threads) thread.join();
  return outcome;
}

TEST(StateTransfer, TheReceiverGetsEveryByteAndWhereItStandsAndNobodyElseChanges) {
  TestState source = make_state(1);
  TestState target = make_state(2);
  const std::string before = bytes_of(target);
  const std::string sent = bytes_of(source);
  ASSERT_NE(before, sent);
  const Outcome outcome = transfer(source);
  ASSERT_TRUE(outcome.received.is_ok()) << outcome.received.status().message();
  EXPECT_TRUE(outcome.sent.is_ok());
  EXPECT_TRUE(outcome.passed.is_ok());
  EXPECT_EQ(bytes_of(target), before);  // T1
  EXPECT_EQ(outcome.received->origin.at, (ResumePoint{42, Phase::kEval}));
  EXPECT_EQ(outcome.received->origin.resumed_from, "step-0000000040-g1-m4");
  EXPECT_EQ(outcome.received->state.bytes(), sent.size());
  ASSERT_TRUE(install_tensors(outcome.received->state.tensors(), target.tensors()).is_ok());
  EXPECT_EQ(bytes_of(target), sent);
  EXPECT_EQ(bytes_of(source), sent);
}

TEST(StateTransfer, OneWrongBitAnywhereIsSeenAndInstallsNothing) {
  TestState source = make_state(1);
  TestState target = make_state(2);
  const std::string before = bytes_of(target);
  // The header, the table, the proof, a tensor, chunks of the large one.
  for (const int broadcast : {0, 1, 2, 3, 7, 8, 9, 10}) {
    const Outcome outcome = transfer(source, broadcast);
    ASSERT_FALSE(outcome.received.is_ok()) << broadcast;
    EXPECT_EQ(outcome.received.status().code(), Code::kInternal);
    EXPECT_EQ(bytes_of(target), before);
  }
}

TEST(StateTransfer, TheReceiverLearnsAllOfTheStateFromItsTable) {
  TestState source = make_state(1);
  const Outcome outcome = transfer(source);
  ASSERT_TRUE(outcome.received.is_ok()) << outcome.received.status().message();
  const auto got = outcome.received->state.tensors();
  ASSERT_EQ(got.size(), source.tensors().size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].section, source.tensors()[i].section);
    EXPECT_EQ(got[i].name, source.tensors()[i].name);
    EXPECT_EQ(got[i].dtype, source.tensors()[i].dtype);
    EXPECT_EQ(got[i].shape, source.tensors()[i].shape);
  }
}

TEST(StateTransfer, AStateOfAnotherShapeIsRefusedByNameWhenItIsInstalled) {
  TestState source = make_state(1);
  TestState target = TestState::small(2);
  const std::string before = bytes_of(target);
  const Outcome outcome = transfer(source);
  ASSERT_TRUE(outcome.received.is_ok());
  EXPECT_THAT(install_tensors(outcome.received->state.tensors(), target.tensors()),
              FailsWith(Code::kBadData, Names("'large.weight'")));
  EXPECT_EQ(bytes_of(target), before);
}

TEST(StateTransfer, AStateWithTwoTensorsOfOneNameIsRefusedByItsReceiver) {
  TestState source = TestState::small(1);
  source.add(StateSection::kParameter, "fc.bias", DType::kF32, {1});
  const Outcome outcome = transfer(source);
  EXPECT_THAT(outcome.received.status(), FailsWith(Code::kInternal, Names("'fc.bias'")));
  EXPECT_FALSE(outcome.passed.is_ok());
}

}  // namespace
}  // namespace lockstep
