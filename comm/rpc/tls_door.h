// Admits callers to TLS as fast as handshakes finish, however many come at once. A handshake costs
// both ends about a millisecond of arithmetic. If ten thousand began together, none would finish
// before its deadline, and all of that work would be lost.
//
//            knock()            first bytes             call_next()             proven or gone
//   (accepted) ─────▶ silent ───────────────▶ waiting ───────────────▶ entered ─────────────▶
//                       │ kAuthDeadlineMs, or     │ hung up, or
//                       │ room for others         │ room for others
//                       └──────────▶ turned away ◀┘
//
// There are two lines: of callers whose first bytes are a right knock (knock.h), and of strangers.
//
// Invariants:
//  1. A turn of the loop begins at most one handshake, so those in hand go on first.
//  2. At most kTlsHandshakes of each line are in hand, not counting those that take longer than
//     kTlsPromptMs. So no caller holds the others up by stopping in the middle.
//  3. No caller that has knocked waits for a stranger. In a line the newest goes first, because it
//     has the most patience left. A caller that has waited too long comes again, and is the newest
//     then. A caller that has hung up costs no arithmetic.
//  4. At most kTlsCallers are silent or waiting. One more displaces one of the callers that have
//     been silent for kTlsPromptMs, or else of the strangers, or of the silent, or of those that
//     have knocked: the oldest from the address that sent most of them (crowd.h). Callers that have
//     only just come stay before strangers, since the knock of one of our own may lie in its
//     socket, not yet read.
//  5. Until it enters, a caller costs a descriptor and no memory of OpenSSL's.
//
// Source of 3: adaptive LIFO, B. Maurer, "Fail at Scale", ACM Queue 13(8), 2015.
//
// Thread-safety: the loop's thread.
#pragma once

#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "comm/base/limits.h"
#include "comm/base/status.h"
#include "comm/net/crowd.h"
#include "comm/rpc/knock.h"
#include "comm/rpc/transport.h"

namespace lockstep::rpc {

class TlsDoor final : public std::enable_shared_from_this<TlsDoor> {
 public:
  // A handshake in hand. Release it when the caller is proven or gone.
  using Turn = std::shared_ptr<void>;
  // Called once for every caller, from the loop, unless the door closes first: with its turn, or
  // with the reason why the door turned it away.
  using Enter = std::function<void(boost::asio::ip::tcp::socket, Result<Turn>)>;

  // `token`: the token that a knock must prove; empty: no knock can.
  TlsDoor(Loop& loop, Token token, Enter enter, size_t callers = limits::kTlsCallers)
      : loop_(loop), knocks_(std::move(token)), enter_(std::move(enter)), most_callers_(callers) {}

  void knock(boost::asio::ip::tcp::socket socket);
  void close();  // no caller enters any more

 private:
  struct Caller {
    boost::asio::ip::tcp::socket socket;
    int64_t since_ms = 0;
    TimerId deadline = 0;
  };
  using CallerId = Crowd::Id;
  struct Callers {
    std::map<CallerId, std::shared_ptr<Caller>> by_id;  // the oldest first
    Crowd crowd;
  };
  struct Line {
    Callers waiting;
    std::map<uint64_t, int64_t> in_hand;  // turns, the oldest first, with their start in ms
  };
  enum LineOf : size_t { kKnocked, kStrangers, kLines };

  static std::shared_ptr<Caller> take(Callers& from, CallerId id, bool is_proven = false);
  void put(Callers& into, CallerId id, std::shared_ptr<Caller> caller);
  bool has_knocked(int fd);
  Callers& who_makes_room();
  void make_room();
  void listen_to(CallerId id, const std::shared_ptr<Caller>& caller);
  void on_word(CallerId id);
  void turn_away(Callers& from, CallerId id, Status why);
  bool is_room_in_hand(Line& line);
  Line* next_line();
  void call_next();
  void wake_at(int64_t when_ms);
  void let_in();
  void enter(boost::asio::ip::tcp::socket socket, Result<Turn> turn);
  void finished(size_t line, uint64_t turn);

  Loop& loop_;
  KnockBook knocks_;
  Enter enter_;  // null once closed
  const size_t most_callers_;
  Callers silent_;
  std::array<Line, kLines> lines_;
  CallerId last_id_ = 0;
  uint64_t last_turn_ = 0;
  bool is_called_ = false;
  TimerId wake_ = 0;  // 0: not needed
};

}  // namespace lockstep::rpc
