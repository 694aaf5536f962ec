#include "comm/link/handshake.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace lockstep::link {
namespace {

static_assert(std::is_trivially_copyable_v<Hello> && std::is_trivially_copyable_v<Challenge> &&
                  std::is_trivially_copyable_v<Verdict>,
              "messages travel as their bytes");
static_assert(sizeof(Hello) == 72 && sizeof(Challenge) == 64 && sizeof(Verdict) == 24,
              "messages have no padding whose bytes could differ");

Digest256 role_proof(const std::string& token, std::string_view role, const Hello& hello,
                     const Nonce& challenge, const std::string& binding) {
  std::string text(role);
  text.append(reinterpret_cast<const char*>(&hello), sizeof hello);
  text.append(reinterpret_cast<const char*>(challenge.data()), challenge.size());
  text += binding;
  return hmac_sha256(token, text);
}

bool same(const Digest256& a, const Digest256& b) {
  return equal_constant_time({reinterpret_cast<const char*>(a.data()), a.size()},
                             {reinterpret_cast<const char*>(b.data()), b.size()});
}

Status judge(const Verdict& verdict, const Hello& hello) {
  const std::string who = "member " + std::to_string(hello.to_member);
  switch (verdict.welcome) {
    case Welcome::kYes:
      if (verdict.member == hello.to_member && verdict.generation == hello.generation) {
        return Status::ok();
      }
      return Status(Code::kRefused, who + ": another member or generation answered");
    case Welcome::kOldGeneration:
      return Status(Code::kRefused, who + " is past generation " +
                                        std::to_string(hello.generation) +
                                        "; wait for the coordinator's next start");
    case Welcome::kWrongMember:
      return Status(Code::kRefused, "another worker listens at the address of " + who);
  }
  return Status(Code::kRefused, who + " sent an unknown verdict");
}

}  // namespace

Nonce new_nonce() {
  Nonce nonce;
  const std::string bytes = random_bytes(nonce.size());
  std::memcpy(nonce.data(), bytes.data(), nonce.size());
  return nonce;
}

Hello new_hello(const Purpose& purpose) {
  Hello hello;
  hello.magic = purpose.magic;
  hello.version = purpose.version;
  hello.nonce = new_nonce();
  return hello;
}

Digest256 acceptor_proof(const Purpose& purpose, const std::string& token, const Hello& hello,
                         const Nonce& challenge, const std::string& binding) {
  return role_proof(token, purpose.acceptor_role, hello, challenge, binding);
}

Digest256 initiator_proof(const Purpose& purpose, const std::string& token, const Hello& hello,
                          const Nonce& challenge, const std::string& binding) {
  return role_proof(token, purpose.initiator_role, hello, challenge, binding);
}

Status introduce(Stream& stream, const Purpose& purpose, const rpc::Token& token,
                 const Hello& hello, const Deadline& deadline) {
  LOCKSTEP_RETURN_IF_ERROR(stream.send(&hello, sizeof hello, deadline));
  const std::string binding = stream.binding();
  Challenge challenge;
  LOCKSTEP_RETURN_IF_ERROR(stream.receive(&challenge, sizeof challenge, deadline));
  const auto shared = token.find([&](const std::string& each) {
    return same(challenge.proof, acceptor_proof(purpose, each, hello, challenge.nonce, binding));
  });
  if (!shared) {
    return Status(Code::kRefused, "the process that answers for member " +
                                      std::to_string(hello.to_member) +
                                      " does not know the run's token");
  }
  const Proof proof = {initiator_proof(purpose, *shared, hello, challenge.nonce, binding)};
  LOCKSTEP_RETURN_IF_ERROR(stream.send(&proof, sizeof proof, deadline));
  Verdict verdict;
  LOCKSTEP_RETURN_IF_ERROR(stream.receive(&verdict, sizeof verdict, deadline));
  return judge(verdict, hello);
}

}  // namespace lockstep::link
