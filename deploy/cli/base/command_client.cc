#include "deploy/cli/base/command_client.h"

#include <unistd.h>

#include <optional>

#include "comm/rpc/asio_transport.h"
#include "comm/rpc/client.h"
#include "comm/run/directory/layout.h"
#include "comm/run/directory/run_files.h"
#include "comm/tls/run_token.h"
#include "comm/tls/tls_identity.h"

namespace lockstep {

Result<wire::CommandAnswer> send_command(const std::string& run_dir, const wire::Command& command,
                                         int64_t timeout_ms) {
  LOCKSTEP_ASSIGN_OR_RETURN(const wire::JobSpec job, read_job_spec(run_dir));
  const auto logger = null_logger();
  LOCKSTEP_ASSIGN_OR_RETURN(auto tls, rpc::open_tls(job.comm().tls(), *logger));
  LOCKSTEP_ASSIGN_OR_RETURN(std::string token,
                            rpc::read_token_file(rundir::file_in(run_dir, rundir::kToken)));
  rpc::AsioLoop loop;
  rpc::AsioTransport transport(loop, std::move(tls), token);
  std::optional<wire::CommandAnswer> answer;
  Status why(Code::kUnavailable, "no coordinator has answered");
  rpc::RpcClient::Options options;
  options.address = [&]() -> Result<rpc::Address> {
    LOCKSTEP_ASSIGN_OR_RETURN(const CoordinatorFile file, read_coordinator_file(run_dir));
    return file.control;
  };
  options.token = std::move(token);
  options.give_up_after_ms = timeout_ms;
  options.refusal_is_final = true;
  options.jitter_seed = static_cast<uint64_t>(::getpid());
  std::optional<rpc::RpcClient> client;
  const auto say = [&] {
    wire::Envelope envelope;
    *envelope.mutable_command() = command;
    (void)client->send(envelope);
  };
  const auto hear = [&](wire::Envelope&& envelope) {
    if (!envelope.has_command_answer()) return;
    answer = std::move(*envelope.mutable_command_answer());
    loop.stop();
  };
  const auto lost = [&](const Status& status) {
    why = Status(Code::kUnavailable,
                 "the coordinator closed the connection without an answer: " + status.message());
    loop.stop();
  };
  const auto failed = [&](const Status& status) {
    why = Status(Code::kUnavailable, status.message());
    loop.stop();
  };
  client.emplace(transport, std::move(options),
                 rpc::RpcClient::Handlers{say, hear, lost, failed, failed});
  loop.call_after(timeout_ms, [&] { loop.stop(); });
  loop.run();
  client->close();
  if (!answer) return why;
  return *std::move(answer);
}

}  // namespace lockstep
