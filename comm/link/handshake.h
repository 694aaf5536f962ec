// How two processes of one run come to trust a data connection.
//
//     initiator                               acceptor
//     Hello     who, to whom, generation  ->
//                                         <-  Challenge  nonce, HMAC over Hello and nonce
//     Proof     HMAC over the same        ->
//                                         <-  Verdict    welcome, or why not
//
// The run's token keys both HMACs. They name their role and the connection's purpose, so no
// attacker can use one as another. Under TLS they cover what only the two ends of this connection
// know (`binding`, stream.h), so no attacker can use them on another connection. All messages have
// a fixed size and are plain bytes of one byte order: no byte of a stranger has to be parsed.
//
// Thread-safety: free functions without state.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "comm/base/hash.h"
#include "comm/base/ids.h"
#include "comm/link/stream.h"
#include "comm/tls/run_token.h"

namespace lockstep::link {

using Nonce = std::array<uint8_t, 32>;

// The purpose of a connection. A proof for one purpose opens no connection of another.
struct Purpose {
  uint64_t magic = 0;
  uint32_t version = 0;  // of all messages
  // The beginnings of the HMACs.
  std::string_view acceptor_role;
  std::string_view initiator_role;
};

struct Hello {
  uint64_t magic = 0;  // of the purpose, as the version
  Generation generation = 0;
  MemberId from_member = 0;
  MemberId to_member = 0;
  uint32_t from_rank = 0;
  uint32_t version = 0;
  Nonce nonce = {};
};

struct Challenge {
  Nonce nonce = {};
  Digest256 proof = {};
};

struct Proof {
  Digest256 proof = {};
};

enum class Welcome : uint32_t { kYes = 1, kOldGeneration = 2, kWrongMember = 3 };

struct Verdict {
  Welcome welcome = Welcome::kYes;
  uint32_t rank = 0;
  MemberId member = 0;
  Generation generation = 0;  // the acceptor's
};

Nonce new_nonce();
// With a new nonce. The caller adds who calls whom.
Hello new_hello(const Purpose& purpose);
Digest256 acceptor_proof(const Purpose& purpose, const std::string& token, const Hello& hello,
                         const Nonce& challenge, const std::string& binding);
Digest256 initiator_proof(const Purpose& purpose, const std::string& token, const Hello& hello,
                          const Nonce& challenge, const std::string& binding);

// The initiator's side, with whichever token the other side has proven, up to and including the
// Verdict. Errors: kRefused (the listener does not know the token, is in a newer generation, or is
// another member), kTimeout, kAborted, kUnavailable.
// REQUIRES: `hello` is of new_hello(purpose).
Status introduce(Stream& stream, const Purpose& purpose, const rpc::Token& token,
                 const Hello& hello, const Deadline& deadline);

}  // namespace lockstep::link
