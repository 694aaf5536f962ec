#include "tests/bench/programs/load_members.h"

#include <algorithm>
#include <utility>

#include "comm/base/clock.h"

namespace lockstep::bench {
namespace {

int64_t now_us() {
  return SystemClock().monotonic_ns() / 1'000;
}

// 64 bits that look random: no hash takes more bytes.
uint64_t hash_of(uint64_t step, uint64_t slot) {
  return (1 + step * 0x10000 + slot) * 0x9E3779B97F4A7C15u | uint64_t{1} << 63;
}

// The record of a run's first epoch, with one sample in each slot.
void fill_record(wire::StepRecord& record, uint64_t step, uint32_t slots) {
  record.set_step(step);
  record.set_samples(slots);
  record.set_loss(2.3);
  record.set_lr(0.002);
  record.set_correct(slots / 2);
  record.set_common_hash(hash_of(step, slots));
  for (uint32_t slot = 0; slot < slots; ++slot) {
    wire::SlotDigest& digest = *record.add_slots();
    digest.set_slot(slot);
    digest.set_digest(hash_of(step, slot));
    digest.set_samples(1);
  }
  wire::PhaseTimes& times = *record.mutable_times();
  times.set_data_wait_us(1'000);
  times.set_forward_us(50'000);
  times.set_backward_us(100'000);
  times.set_communication_us(20'000);
  times.set_optimizer_us(5'000);
  times.set_other_us(500);
}

}  // namespace

LoadMembers::LoadMembers(rpc::AsioTransport& transport, Options options)
    : options_(std::move(options)), members_(options_.members) {
  for (uint32_t i = 0; i < options_.members; ++i) {
    rpc::RpcClient::Options client;
    client.address = options_.address;
    client.token = options_.token;
    client.jitter_seed = options_.hello.pid() + i;
    members_[i].client = std::make_unique<rpc::RpcClient>(
        transport, std::move(client),
        rpc::RpcClient::Handlers{
            .on_ready = [this, i] { register_member(i); },
            .on_message = [this, i](wire::Envelope&& message) { on_message(i, message); },
            .on_lost = [this, i](const Status&) { on_lost(i); },
            .on_failed = [](const Status&) {}});
  }
}

LoadMembers::~LoadMembers() = default;

void LoadMembers::register_member(uint32_t index) {
  Member& member = members_[index];
  wire::Envelope envelope;
  wire::Register& message = *envelope.mutable_register_();
  message = options_.hello;
  message.set_member(member.id);
  message.set_pid(options_.hello.pid() + index);
  message.set_local_rank(options_.hello.local_rank() + index);
  envelope.set_term(member.term);
  if (member.asked_us == 0) ++echoes_;
  member.asked_us = now_us();
  (void)member.client->send(envelope);
}

void LoadMembers::on_message(uint32_t index, const wire::Envelope& message) {
  if (message.has_beat()) return;
  Member& member = members_[index];
  member.term = message.term();
  member.generation = message.generation();
  if (message.has_prepare()) send_promise(member, message.generation());
  if (message.has_start() && member.steps_told == 0) send_records(member);
  if (message.has_records_ack() && message.records_ack().batch() == member.batch)
    send_records(member);
  if (!message.has_registered()) return;
  member.id = message.registered().member();
  if (!std::exchange(member.is_registered, true)) ++registered_;
  if (member.asked_us == 0) return;
  round_trips_us_.push_back(now_us() - std::exchange(member.asked_us, 0));
  --echoes_;
}

void LoadMembers::on_lost(uint32_t index) {
  Member& member = members_[index];
  if (std::exchange(member.is_registered, false)) --registered_;
  if (std::exchange(member.asked_us, 0) != 0) --echoes_;
}

void LoadMembers::send_heartbeat(Member& member) {
  wire::Envelope envelope;
  envelope.mutable_heartbeat();
  envelope.set_term(member.term);
  envelope.set_generation(member.generation);
  (void)member.client->send(envelope);
  ++heartbeats_;
}

void LoadMembers::send_promise(Member& member, uint64_t generation) {
  wire::Envelope envelope;
  envelope.mutable_promise()->set_generation(generation);
  envelope.set_term(member.term);
  envelope.set_generation(generation);
  (void)member.client->send(envelope);
}

void LoadMembers::send_records(Member& member) {
  const uint32_t left = options_.train_steps - member.steps_told;
  if (left == 0) {
    reported_ += options_.train_steps > 0 ? 1 : 0;
    return;
  }
  wire::Envelope envelope;
  wire::StepRecords& batch = *envelope.mutable_step_records();
  batch.set_batch(++member.batch);
  for (uint32_t i = 0; i < std::min(left, options_.batch_steps); ++i)
    fill_record(*batch.add_records(), member.steps_told++, options_.slots);
  envelope.set_term(member.term);
  envelope.set_generation(member.generation);
  record_bytes_ += envelope.ByteSizeLong();
  (void)member.client->send(envelope);
}

void LoadMembers::beat() {
  for (Member& member : members_)
    if (member.is_registered) send_heartbeat(member);
}

void LoadMembers::burst(uint32_t count) {
  for (uint32_t i = 0; i < members_.size(); ++i) {
    if (!members_[i].is_registered) continue;
    for (uint32_t k = 0; k < count; ++k) send_heartbeat(members_[i]);
    register_member(i);
  }
}

void LoadMembers::probe(uint32_t every) {
  for (uint32_t i = 0; i < members_.size(); i += every)
    if (members_[i].is_registered) register_member(i);
}

std::vector<int64_t> LoadMembers::take_round_trips_us() {
  return std::exchange(round_trips_us_, {});
}

}  // namespace lockstep::bench
