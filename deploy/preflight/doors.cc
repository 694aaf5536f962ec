#include "deploy/preflight/doors.h"

#include <cstdlib>

#include "comm/wire/control.pb.h"

namespace lockstep::preflight {
namespace {

std::string seconds_text(int64_t ms) {
  const int64_t tenths = std::abs(ms) / 100;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " s";
}

Finding judge_clock(int64_t there_ms, int64_t here_ms, const std::string& door) {
  const int64_t skew_ms = here_ms - there_ms;
  if (std::abs(skew_ms) <= kSkewMs)
    return {"clock", Grade::kGood, "within " + seconds_text(kSkewMs) + " of the others"};
  return {"clock", Grade::kWarning,
          seconds_text(skew_ms) + (skew_ms > 0 ? " ahead of " : " behind ") + door +
              "; their logs and metrics will not fit together, and certificates may seem expired: "
              "run NTP on all hosts"};
}

}  // namespace

// ---- the side that listens ----

Result<std::unique_ptr<Door>> Door::open(rpc::Transport& transport, const std::string& host,
                                         const std::string& name, const rpc::Token& token,
                                         const std::string& version, Logger& logger) {
  auto door = std::make_unique<Door>();
  Door* const self = door.get();
  rpc::RpcServer::Handlers handlers;
  handlers.on_peer = [self, version](rpc::PeerId peer, const std::string&) {
    wire::Envelope envelope;
    envelope.mutable_command_answer()->set_ok(true);
    envelope.mutable_command_answer()->set_message(words_of(version, self->clock_.wall_ms()));
    self->server_->send(peer, envelope);
  };
  handlers.on_message = [](rpc::PeerId, wire::Envelope&&) {};
  handlers.on_lost = [](rpc::PeerId, const Status&) {};
  LOCKSTEP_ASSIGN_OR_RETURN(
      door->server_, rpc::RpcServer::start(transport, {host, 0}, token, logger, handlers, name));
  return door;
}

std::string words_of(const std::string& version, int64_t wall_ms) {
  return std::to_string(wall_ms) + " " + version;
}

// ---- the side that connects ----

std::vector<Finding> judge_words(const std::string& words, const std::string& own_version,
                                 int64_t seen_ms, const std::string& door) {
  char* end = nullptr;
  const int64_t there_ms = std::strtoll(words.c_str(), &end, 10);
  if (*end != ' ' || end == words.c_str())
    return {{"version", Grade::kBad, door + " is not a preflight of this version of Lockstep"}};
  const std::string version = end + 1;
  std::vector<Finding> findings = {
      {"network", Grade::kGood, "connections to others, proven by the run's token"}};
  findings.push_back(judge_clock(there_ms, seen_ms, door));
  if (version == own_version) {
    findings.push_back({"version", Grade::kGood, "the same everywhere: " + own_version});
  } else {
    findings.push_back({"version", Grade::kBad,
                        "this is " + own_version + ", but " + door + " is " + version +
                            "; install one of them on all hosts"});
  }
  return findings;
}

Finding judge_failure(const Status& why, const std::string& door) {
  const std::string what = "no connection to " + door + ": " + why.message() + "; ";
  switch (why.obstacle()) {
    case Obstacle::kName:
      return {"name", Grade::kBad, what + "see /etc/hosts, DNS, and comm.advertise"};
    case Obstacle::kPort:
      return {"port", Grade::kBad, what + "a firewall refuses it, or that rank has ended"};
    case Obstacle::kCertificate:
      return {"certificate", Grade::kBad,
              what + "comm.tls needs a certificate for all hosts: make it with `lockstep certs`"};
    case Obstacle::kVersion:
      return {"version", Grade::kBad, what + "install one version on all hosts"};
    case Obstacle::kNone:
      break;
  }
  if (why.code() == Code::kRefused)
    return {"token", Grade::kBad, what + "check that all hosts see the same run directory"};
  return {
      "route", Grade::kBad,
      what + "check that all hosts are in comm.network, and that no firewall drops the packets"};
}

Knock::Knock(rpc::Transport& transport, const rpc::Address& address, const rpc::Token& token,
             std::string version, std::string door)
    : version_(std::move(version)), door_(std::move(door)) {
  rpc::RpcClient::Options options;
  options.address = [address] { return address; };
  options.token = token;
  rpc::RpcClient::Handlers handlers;
  handlers.on_ready = [] {};
  handlers.on_message = [this](wire::Envelope&& envelope) {
    end(judge_words(envelope.command_answer().message(), version_, clock_.wall_ms(), door_));
  };
  handlers.on_lost = [this](const Status& why) { why_ = why; };
  handlers.on_failed = [this](const Status& why) { end({judge_failure(why, door_)}); };
  handlers.on_distrust = [this](const Status& why) { end({judge_failure(why, door_)}); };
  options.give_up_after_ms = kKnockMs;
  options.refusal_is_final = true;
  client_ = std::make_unique<rpc::RpcClient>(transport, std::move(options), std::move(handlers));
}

void Knock::end(std::vector<Finding> findings) {
  if (is_over_) return;
  is_over_ = true;
  findings_ = std::move(findings);
}

void Knock::give_up() {
  end({judge_failure(why_, door_)});
}

}  // namespace lockstep::preflight
