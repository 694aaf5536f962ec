#include "comm/rpc/server.h"

#include <optional>
#include <unordered_map>

#include "comm/base/check.h"
#include "comm/base/limits.h"
#include "comm/net/crowd.h"
#include "comm/rpc/auth.h"
#include "comm/rpc/refusal_log.h"
#include "comm/wire/control.pb.h"

namespace lockstep::rpc {

// Handlers of connections hold `this`. The server closes every connection before it is destroyed,
// and a closed connection calls no handler.
struct RpcServer::Impl {
  struct Peer {
    std::shared_ptr<Connection> connection;
    std::optional<ServerHandshake> handshake;  // none once proven
    TimerId deadline = 0;
  };

  Impl(Loop& the_loop, Token the_token, Logger& the_logger, Handlers the_handlers)
      : loop(the_loop),
        token(std::move(the_token)),
        refusals(the_loop, the_logger),
        handlers(std::move(the_handlers)) {}

  ~Impl() {
    listener.reset();
    for (auto& [id, peer] : peers) loop.cancel(peer.deadline);
  }

  void accept(std::shared_ptr<Connection> connection);
  void on_frame(PeerId id, wire::Frame&& frame);
  void on_response(PeerId id, Peer& peer, const wire::Frame& frame);
  void on_close(PeerId id, const Status& why);
  void refuse(PeerId id, const Status& why);
  std::shared_ptr<Connection> forget(PeerId id);

  Loop& loop;
  Token token;
  RefusalLog refusals;
  Handlers handlers;
  std::unordered_map<PeerId, Peer> peers;
  Crowd unproven;
  PeerId last_id = 0;
  std::unique_ptr<Listener> listener;
  std::vector<std::string> addresses;  // ours, as callers dial them
};

void RpcServer::Impl::accept(std::shared_ptr<Connection> connection) {
  if (connection->is_open() && unproven.size() >= limits::kUnprovenPeers) {
    const std::string why = std::to_string(unproven.size()) +
                            " others have not proven the token yet, and that is the limit";
    const auto displaced =
        unproven.overdue(limits::kUnprovenOfOneHost, loop.now_ms() - limits::kProofPromptMs);
    if (!displaced) return refusals.refused(connection->peer(), why);
    const auto gone = forget(*displaced);
    refusals.refused(gone->peer(), why);
    gone->close();
  }
  const PeerId id = ++last_id;
  unproven.add(id, host_of(connection->peer()), loop.now_ms());
  Peer& peer = peers[id];
  peer.connection = std::move(connection);
  peer.handshake.emplace(token, addresses);
  peer.deadline = loop.call_after(limits::kAuthDeadlineMs, [this, id] {
    refuse(id, Status(Code::kTimeout, "it did not prove the token within " +
                                          std::to_string(limits::kAuthDeadlineMs) + " ms"));
  });
  peer.connection->set_handlers(
      {.on_frame = [this, id](wire::Frame&& frame) { on_frame(id, std::move(frame)); },
       .on_close = [this, id](const Status& why) { on_close(id, why); }});
  peer.connection->send(peer.handshake->challenge());
}

void RpcServer::Impl::on_frame(PeerId id, wire::Frame&& frame) {
  Peer& peer = peers.at(id);
  if (peer.handshake) return on_response(id, peer, frame);
  wire::Envelope envelope;
  const Status parsed = parse_frame(frame, wire::FrameKind::kEnvelope, &envelope);
  if (parsed.is_ok()) return handlers.on_message(id, std::move(envelope));
  const auto connection = forget(id);
  handlers.on_lost(id, parsed);
}

void RpcServer::Impl::on_response(PeerId id, Peer& peer, const wire::Frame& frame) {
  auto accepted = peer.handshake->on_response(frame);
  if (!accepted.is_ok()) return refuse(id, accepted.status());
  peer.handshake.reset();
  unproven.remove(id, /*is_proven=*/true);
  loop.cancel(peer.deadline);
  peer.connection->set_frame_limit(limits::kFrameBytes);
  peer.connection->send(std::move(accepted).value());
  handlers.on_peer(id, peer.connection->peer());
}

void RpcServer::Impl::refuse(PeerId id, const Status& why) {
  const auto connection = forget(id);
  refusals.refused(connection->peer(), why.message());
  connection->send(ServerHandshake::refusal(why));
}

void RpcServer::Impl::on_close(PeerId id, const Status& why) {
  const bool was_proven = !peers.at(id).handshake;
  const auto connection = forget(id);
  if (was_proven) return handlers.on_lost(id, why);
  refusals.refused(connection->peer(), why.message());
}

// The connection closes when its last owner releases it.
std::shared_ptr<Connection> RpcServer::Impl::forget(PeerId id) {
  const auto peer = peers.find(id);
  LOCKSTEP_CHECK(peer != peers.end(), "a closed connection called");
  unproven.remove(id);
  loop.cancel(peer->second.deadline);
  auto connection = std::move(peer->second.connection);
  peers.erase(peer);
  return connection;
}

Result<std::unique_ptr<RpcServer>> RpcServer::start(Transport& transport, const Address& address,
                                                    Token token, Logger& logger, Handlers handlers,
                                                    const std::string& name) {
  auto impl =
      std::make_unique<Impl>(transport.loop(), std::move(token), logger, std::move(handlers));
  LOCKSTEP_ASSIGN_OR_RETURN(
      impl->listener,
      transport.listen(address, [server = impl.get()](std::shared_ptr<Connection> connection) {
        server->accept(std::move(connection));
      }));
  const Address& own = impl->listener->address();
  impl->addresses = {to_string(own)};
  if (!name.empty()) impl->addresses.push_back(to_string(Address{name, own.port}));
  return std::unique_ptr<RpcServer>(new RpcServer(std::move(impl)));
}

RpcServer::RpcServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RpcServer::~RpcServer() = default;

const Address& RpcServer::address() const {
  return impl_->listener->address();
}

size_t RpcServer::peers() const {
  return impl_->peers.size() - impl_->unproven.size();
}

void RpcServer::send(PeerId id, const wire::Envelope& envelope) {
  send(id, share(envelope));
}

wire::SharedFrame RpcServer::share(const wire::Envelope& envelope) {
  const wire::Frame frame = make_frame(wire::FrameKind::kEnvelope, envelope);
  LOCKSTEP_CHECK(frame.payload.size() <= limits::kFrameBytes, "a message above the frame limit");
  return wire::share_frame(frame);
}

void RpcServer::send(PeerId id, wire::SharedFrame message) {
  const auto peer = impl_->peers.find(id);
  if (peer == impl_->peers.end() || peer->second.handshake) return;
  peer->second.connection->send_shared(std::move(message));
}

void RpcServer::send_all(const wire::Envelope& envelope) {
  const wire::SharedFrame message = share(envelope);
  for (const auto& [id, peer] : impl_->peers)
    if (!peer.handshake) peer.connection->send_shared(message);
}

void RpcServer::disconnect(PeerId id) {
  const auto peer = impl_->peers.find(id);
  if (peer == impl_->peers.end() || peer->second.handshake) return;
  impl_->forget(id)->close();
}

}  // namespace lockstep::rpc
