#include <csignal>
#include <cstdio>
#include <memory>

#include "comm/environment/standard_streams.h"
#include "comm/http/http_server.h"
#include "comm/rpc/asio_loop.h"
#include "coordinator/page/page.h"
#include "deploy/cli/base/console.h"
#include "deploy/cli/commands/commands.h"
#include "deploy/cli/watch/run_source.h"

namespace lockstep {
namespace {

constexpr int kUnavailable = 503;

struct UiArguments {
  std::string run_dir;
  uint16_t port = 0;
};

http::Handler forward(RunSource& source, std::string name) {
  return [&source, name = std::move(name)](const http::Request& request) {
    auto answer = source.get(name, request.query);
    if (answer.is_ok())
      return http::Response{.content_type = "application/json", .body = std::move(*answer)};
    return http::Response{.status = kUnavailable, .body = answer.status().message() + "\n"};
  };
}

Status serve(const UiArguments& arguments) {
  LOCKSTEP_ASSIGN_OR_RETURN(RunSource source, RunSource::open(arguments.run_dir));
  std::map<std::string, http::Handler> routes;
  for (const page::File& file : page::files()) routes[std::string(file.path)] = page::serve(file);
  for (const char* name : {"status", "history", "events", "job"})
    routes["/api/v1/" + std::string(name)] = forward(source, name);
  rpc::AsioLoop loop;
  const auto logger = null_logger();
  LOCKSTEP_ASSIGN_OR_RETURN(
      const auto server,
      http::HttpServer::start(loop, {.address = {"127.0.0.1", arguments.port}, .allowed_hosts = {}},
                              routes, *logger));
  loop.on_signals({SIGINT, SIGTERM}, [&loop](int) { loop.stop(); });
  print_text("http://%s/ shows %s; Ctrl-C ends this\n", rpc::to_string(server->address()).c_str(),
             source.run_dir().c_str());
  std::fflush(stdout);
  loop.run();
  return Status::ok();
}

constexpr char kUiExamples[] =
    "Serves the page of a live or ended run to browsers on this machine only. From another "
    "machine\n"
    "use `ssh -L 8080:127.0.0.1:8080`.\n\n"
    "Examples:\n"
    "  lockstep ui runs/first\n"
    "  lockstep ui runs/first --port 8080\n"
    "\n"
    "Exit codes: 0 ended by a signal, 66 no run there, 78 the port is taken.";

}  // namespace

void add_ui_command(CLI::App& app, Commands& commands) {
  auto* command = app.add_subcommand("ui", "Show a run in the browser");
  const auto arguments = std::make_shared<UiArguments>();
  command->add_option("run-dir", arguments->run_dir, "Run directory")->required();
  command->add_option("--port", arguments->port, "Port on loopback; 0: any free one");
  command->footer(kUiExamples);
  commands[command] = [arguments] { return report(serve(*arguments)); };
}

}  // namespace lockstep
