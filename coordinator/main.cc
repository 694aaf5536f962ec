// lockstep-coordinator --run-dir DIR [--resume] [--version]
#include <CLI/CLI.hpp>
#include <csignal>
#include <cstring>
#include <iostream>

#include "comm/base/build_info.h"
#include "comm/base/file.h"
#include "comm/rpc/asio_transport.h"
#include "comm/rpc/http_server.h"
#include "coordinator/begin.h"
#include "coordinator/http_routes.h"
#include "coordinator/server.h"

namespace lockstep::coordinator {
namespace {

Status serve(const std::string& run_dir, bool resume, Logger& logger, int* code) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto lock, RunLock::take(run_dir));
  const SystemClock clock;
  LOCKSTEP_ASSIGN_OR_RETURN(Begun begun, begin_run(run_dir, resume, clock, logger));
  LOCKSTEP_ASSIGN_OR_RETURN(const rpc::Address listen,
                            rpc::parse_address(begun.options.job.metrics().listen()));
  rpc::AsioLoop loop;
  rpc::AsioTransport transport(loop);
  CoordinatorMetrics metrics(begun.beginning.run_id, build_info(), clock);
  const auto on_end = [&](int exit_code) {
    *code = exit_code;
    loop.stop();
  };
  Server server({loop, *begun.journal, *begun.history, logger, clock, metrics, on_end},
                begun.options, begin_state(begun.beginning, loop.now_ms()));
  LOCKSTEP_RETURN_IF_ERROR(server.listen(transport, {"127.0.0.1", 0}, begun.token));
  std::string own_address;
  LOCKSTEP_ASSIGN_OR_RETURN(
      const auto http,
      http::HttpServer::start(loop, {.address = listen, .allowed_hosts = {}},
                              http_routes(server, [&own_address] { return own_address; }), logger));
  own_address = rpc::to_string(http->address());
  loop.on_signals({SIGTERM, SIGINT, SIGUSR1}, [&server](int signal) {
    server.stop(std::string("signal SIG") + sigabbrev_np(signal));
  });
  LOCKSTEP_RETURN_IF_ERROR(write_endpoints(
      run_dir, {begun.beginning.run_id, begun.beginning.term,
                rpc::to_string(server.control_address()), own_address, clock.wall_ms()}));
  logger.info("serving", "control at " + rpc::to_string(server.control_address()) + ", HTTP at " +
                             own_address);
  loop.run();
  return Status::ok();
}

int run(const std::string& given_dir, bool resume) {
  const auto run_dir = absolute_path(given_dir);
  if (!run_dir.is_ok()) {
    std::cerr << "coordinator: " << run_dir.status().message() << "\n";
    return exit_code(run_dir.status());
  }
  auto logger = open_json_logger(*run_dir + "/logs/coordinator.log.jsonl", "coordinator", true);
  if (!logger.is_ok()) {
    std::cerr << "coordinator: " << logger.status().message() << "\n";
    return exit_code(logger.status());
  }
  int code = 0;
  const Status status = serve(*run_dir, resume, **logger, &code);
  if (status.is_ok()) return code;
  (*logger)->error("not_started", status.message());
  return exit_code(status);
}

}  // namespace
}  // namespace lockstep::coordinator

int main(int argc, char** argv) {
  CLI::App app("The coordinator of one run; `lockstep run` starts it.", "lockstep-coordinator");
  std::string run_dir;
  bool resume = false;
  app.add_option("--run-dir", run_dir, "Directory that `lockstep run` has prepared")->required();
  app.add_flag("--resume", resume, "Go on from the newest checkpoint of the run");
  app.set_version_flag("--version", "lockstep-coordinator " +
                                        std::string(lockstep::build_info().version) + " (" +
                                        std::string(lockstep::build_info().revision) + ")");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : lockstep::exit_code({lockstep::Code::kUsage, ""});
  }
  return lockstep::coordinator::run(run_dir, resume);
}
