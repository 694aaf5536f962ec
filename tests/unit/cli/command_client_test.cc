#include "deploy/cli/base/command_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "comm/base/file.h"
#include "comm/base/log.h"
#include "comm/rpc/asio_transport.h"
#include "comm/rpc/auth.h"
#include "comm/rpc/server.h"
#include "comm/run/directory/run_files.h"
#include "tests/support/fails_with.h"
#include "tests/support/temporary_directory.h"

namespace lockstep {
namespace {

constexpr int64_t kLongMs = 60'000;
constexpr int64_t kShortMs = 50;

wire::Command scale_to(uint32_t workers) {
  wire::Command command;
  command.set_scale_to(workers);
  return command;
}

class CommandClient : public testing::Test {
 protected:
  void TearDown() override {
    loop_.post([this] { loop_.stop(); });
    if (thread_.joinable()) thread_.join();
    server_.reset();
  }

  void prepare_run() {
    wire::JobSpec job;
    job.mutable_train();
    ASSERT_TRUE(write_job_spec(directory_, job).is_ok());
    token_ = *rpc::create_token_file(directory_ + "/token");
  }

  // A coordinator that answers a command with its number of workers, or hangs up.
  void serve(bool answers) {
    rpc::RpcServer::Handlers handlers;
    handlers.on_peer = [](rpc::PeerId, const std::string&) {};
    handlers.on_lost = [](rpc::PeerId, const Status&) {};
    handlers.on_message = [this, answers](rpc::PeerId peer, wire::Envelope&& envelope) {
      if (!answers) return server_->disconnect(peer);
      wire::Envelope reply;
      reply.mutable_command_answer()->set_ok(true);
      reply.mutable_command_answer()->set_message(std::to_string(envelope.command().scale_to()));
      server_->send(peer, reply);
    };
    auto server = rpc::RpcServer::start(transport_, {"127.0.0.1", 0}, token_, *logger_, handlers);
    ASSERT_TRUE(server.is_ok());
    server_ = std::move(server).value();
    ASSERT_TRUE(replace_file(directory_ + "/coordinator.json",
                             R"({"pid": 1, "http": "127.0.0.1:1", "control": ")" +
                                 rpc::to_string(server_->address()) + "\"}")
                    .is_ok());
    thread_ = std::thread([this] { loop_.run(); });
  }

  TemporaryDirectory temporary_;
  std::string directory_ = temporary_.path();
  std::string token_;
  std::unique_ptr<Logger> logger_ = null_logger();
  rpc::AsioLoop loop_;
  rpc::AsioTransport transport_{loop_};
  std::unique_ptr<rpc::RpcServer> server_;
  std::thread thread_;
};

TEST_F(CommandClient, TheCoordinatorsAnswerComesBack) {
  prepare_run();
  serve(true);
  const auto answer = send_command(directory_, scale_to(7), kLongMs);
  ASSERT_TRUE(answer.is_ok()) << answer.status().message();
  EXPECT_TRUE(answer->ok());
  EXPECT_EQ(answer->message(), "7");
}

TEST_F(CommandClient, ACoordinatorThatGoesWithoutAnAnswerIsNotAskedTwice) {
  prepare_run();
  serve(false);
  const auto answer = send_command(directory_, scale_to(7), kLongMs);
  EXPECT_THAT(answer, FailsWith(Code::kUnavailable, Says("without an answer")));
}

TEST_F(CommandClient, WithoutACoordinatorItGivesUp) {
  prepare_run();
  EXPECT_EQ(send_command(directory_, scale_to(2), kShortMs).status().code(), Code::kUnavailable);
}

TEST_F(CommandClient, ADirectoryOfNoRunIsSaidAtOnce) {
  EXPECT_EQ(send_command(directory_, scale_to(2), kLongMs).status().code(), Code::kNoInput);
}

}  // namespace
}  // namespace lockstep
