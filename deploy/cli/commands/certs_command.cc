// `lockstep certs`: certificates for a run (comm.tls), from an authority of its own.
#include <memory>

#include "comm/environment/standard_streams.h"
#include "deploy/cli/base/certificates.h"
#include "deploy/cli/base/console.h"
#include "deploy/cli/commands/commands.h"

namespace lockstep {
namespace {

constexpr int64_t kDays = 365;
constexpr int64_t kDaySeconds = int64_t{24} * 3600;

struct CertsArguments {
  CertificateRequest request;
  int64_t days = kDays;
};

int issue(CertsArguments arguments) {
  CertificateRequest& request = arguments.request;
  request.valid_seconds = arguments.days * kDaySeconds;
  const auto issued = issue_certificate(request);
  if (!issued.is_ok()) return report(issued.status());
  const std::string& dir = request.directory;
  if (issued->is_new_authority)
    print_text("new authority: %s/ca.crt; keep %s/ca.key to yourself: whoever has it can join\n",
               dir.c_str(), dir.c_str());
  std::string hosts;
  for (const std::string& host : issued->hosts) hosts += " " + host;
  print_text("certificate until %s for%s\n", issued->ends.c_str(), hosts.c_str());
  print_text("copy ca.crt, tls.crt and tls.key to every machine, and set comm.tls=%s\n",
             dir.c_str());
  return 0;
}

}  // namespace

void add_certs_command(CLI::App& app, Commands& commands) {
  auto* command = app.add_subcommand("certs", "Make the certificates of a run (comm.tls)");
  const auto arguments = std::make_shared<CertsArguments>();
  command->add_option("--dir,-d,dir", arguments->request.directory, "Directory of the files")
      ->required();
  command
      ->add_option(
          "--hosts", arguments->request.hosts,
          "Names and addresses by which others reach the machines; added to those of loopback and "
          "of the present certificate")
      ->delimiter(',');
  command->add_option("--days", arguments->days, "Days that the certificate is valid")
      ->check(CLI::Range(int64_t{1}, int64_t{3650}))
      ->capture_default_str();
  command->footer(
      "Makes the authority, ca.crt and ca.key, if it is missing, and always a new tls.crt and\n"
      "tls.key. A live run reads them again by itself.\n"
      "Examples:\n"
      "  lockstep certs /etc/lockstep/tls --hosts 10.2.0.1,10.2.0.2,node1,node2\n"
      "  lockstep certs /etc/lockstep/tls --hosts 10.2.0.3     # one more; the others stay\n"
      "  lockstep certs /etc/lockstep/tls --days 30            # renewed\n"
      "\n"
      "Exit codes: 0 made, 64 bad usage, 78 cannot be made here.");
  commands[command] = [arguments] { return issue(*arguments); };
}

}  // namespace lockstep
