// Accepts connections of peers at any time, on a thread of its own. A peer that is faster than this
// process still finds the acceptor, and a peer that is late hears so at once.
//
//     stranger --Hello--> --Proof--> proven --+--> generation too old: refused
//        |  5 s, at most 64 a listener        +--> else held until connect() of it takes it
//        +--> dropped                              (crowd.h says who makes room)
//
// Thread-safety: all calls from any thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "comm/link/handshake.h"
#include "comm/link/stream.h"
#include "comm/net/crowd.h"
#include "comm/tls/tls_identity.h"

namespace lockstep::link {

struct Arrival {
  Stream stream;
  Hello hello;
  bool over_unix = false;
  int64_t drop_at_ms = 0;
};

class Acceptor {
 public:
  // `tls`: demanded from peers over TCP; null: nothing.
  Acceptor(const Purpose& purpose, rpc::Token token, std::shared_ptr<rpc::TlsIdentity> tls,
           Descriptor unix_listener, Descriptor tcp_listener, Descriptor wake);
  ~Acceptor();
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  // From now on refuses generations below `oldest`. Waits for them return kAborted.
  void refuse_below(Generation oldest);

  // The next proven connection of `generation`. Errors: kTimeout, kAborted.
  Result<Arrival> wait_for(Generation generation, const Deadline& deadline);

  // Answers a proven connection that this process does not take, and says why.
  static void turn_away(Arrival& arrival, Welcome why, Generation ours);

 private:
  struct Stranger;

  void run();
  int poll_once(std::list<Stranger>* strangers);
  void accept_from(const Descriptor& listener, bool is_unix, std::list<Stranger>* strangers);
  // False if the connection needs no more work, one way or the other.
  bool advance(Stranger* stranger);
  bool answer(Stranger* stranger);
  void admit(Stranger* stranger);
  void forget(const Stranger& stranger);
  void drop_expired(std::list<Stranger>* strangers);

  const Purpose purpose_;
  const rpc::Token token_;
  const std::shared_ptr<rpc::TlsIdentity> tls_;
  const Descriptor unix_listener_;
  const Descriptor tcp_listener_;
  const Descriptor wake_;  // eventfd, readable when the thread has to stop

  // Only the thread uses these. The crowds say which unproven caller makes room.
  int64_t accept_again_at_ms_ = 0;
  Crowd on_this_host_;
  Crowd on_the_network_;
  Crowd::Id last_stranger_ = 0;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Arrival> arrivals_;
  Generation oldest_ = 0;
  std::thread thread_;
};

}  // namespace lockstep::link
