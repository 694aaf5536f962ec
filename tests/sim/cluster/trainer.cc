#include "tests/sim/cluster/trainer.h"

#include <utility>

#include "comm/base/planted_bug.h"

namespace lockstep::sim {

Trainer::Trainer(Parts parts)
    : parts_(std::move(parts)),
      world_(parts_.world),
      waiter_(parts_.process.loop(), world_.prng),
      segment_(std::make_shared<Segment>()),
      state_(initial_state(world_.seed)) {
  segment_->process = parts_.process.name();
  world_.fabric.attach(segment_, [this] { waiter_.poke(); });
  task_ = run();
  parts_.process.loop().post([this] { task_.start(); });
}

Trainer::~Trainer() {
  world_.fabric.detach(segment_);
}

void Trainer::put(StartOrder order) {
  if (order.generation <= closed_through_) return;
  start_ = std::move(order);
  waiter_.poke();
}

void Trainer::plan(StartOrder order) {
  if (order.generation <= closed_through_) return;
  plan_ = std::move(order);
  waiter_.poke();
}

void Trainer::close(Generation through) {
  closed_through_ = std::max(closed_through_, through);
  if (start_ && start_->generation <= closed_through_) start_.reset();
  if (plan_ && plan_->generation <= closed_through_) plan_.reset();
  segment_->closed_through = std::max(segment_->closed_through, through);
  world_.fabric.changed();
}

void Trainer::forget() {
  start_.reset();
  plan_.reset();
}

void Trainer::end() {
  has_ended_ = true;
  waiter_.poke();
}

void Trainer::acknowledge(const std::string& checkpoint) {
  acknowledged_ = checkpoint;
  waiter_.poke();
}

bool Trainer::can_join() const {
  return plan_ && joins(plan_->start, plan_->member);
}

bool Trainer::has_plan_for(Generation generation) const {
  return plan_ && plan_->generation > generation && !can_join();
}

Task<Status> Trainer::run() {
  for (;;) {
    const std::function<bool()> has_order = [this] { return has_ended_ || start_ || can_join(); };
    co_await waiter_.until(has_order);
    if (has_ended_) co_return Status::ok();
    const StartOrder order = *std::exchange(start_ ? start_ : plan_, std::nullopt);
    (void)co_await run_generation(order);
    generation_ = 0;
  }
}

Task<Status> Trainer::run_generation(StartOrder order) {
  if (!rank_of(order.start, order.member)) {
    world_.fail("protocol", parts_.process.name() + " was started in generation " +
                                std::to_string(order.generation) + " that does not list it");
    co_return Status::ok();
  }
  Life life = make_life(std::move(order));
  Status status = co_await begin(life);
  if (status.is_ok()) status = co_await follow_plan(life);
  ended_with(life, status);
  co_return status;
}

void Trainer::ended_with(const Life& life, const Status& status) {
  const Generation generation = life.order.generation;
  world_.trace.add("generation-over", parts_.process.name(), generation, life.at.step,
                   status.message());
  if (status.is_ok()) return;
  // Once the generation is closed, every error but the script's own is a consequence of the close.
  const bool is_closed = parts_.gate.is_closed(generation) || has_ended_;
  const bool is_own = status.code() == Code::kRaised && !has_ended_;
  if (!is_own && (is_closed || status.code() == Code::kAborted)) {
    parts_.in_hand.slots.clear();
    const MemberId culprit = life.collective ? life.collective->culprit() : 0;
    if (!is_closed) parts_.port.suspect(generation, culprit, status.message());
    // U4: lets go of what it holds of the generation.
    segment_->closed_through = std::max(segment_->closed_through, generation);
    world_.fabric.changed();
    return;
  }
  parts_.port.leave(generation, wire::Leave::FAILED, status, parts_.gate.standing().applied);
  parts_.on_failure(status);
}

Trainer::Life Trainer::make_life(StartOrder order) const {
  Life life;
  life.rank = *rank_of(order.start, order.member);
  life.is_writer = order.start.writer() == order.member;
  life.plan = make_phase_plan(world_.job, world_.facts, order.start.total_steps(),
                              world_.options.has_edges);
  life.track = track_;
  if (!order.planned) {
    life.track = holds_state(order.start, order.member)
                     ? track_at(order.start, track_, life.plan.by)
                     : track_of(order.start.evals());
    life.plan.end_with(life.track, order.start.total_steps());
  }
  const bool has_own = holds_state(order.start, order.member);
  life.at =
      begin_of(order.start, has_own ? parts_.gate.standing().applied : std::nullopt, life.plan);
  for (const wire::SkippedSlots& skip : order.start.skipped())
    life.skips.add(skip.step(), skip.slots().begin(), skip.slots().end());
  life.order = std::move(order);
  return life;
}

Task<Status> Trainer::begin(Life& life) {
  const bool is_planned = life.order.planned;
  // A joiner waits for the others to agree, however long that takes.
  Status status = co_await connect(life, is_planned ? 0 : world_.options.connect_deadline_ms);
  if (!status.is_ok()) co_return status;
  status = co_await install(life);
  if (!status.is_ok()) co_return status;
  track_ = life.track;
  if (!parts_.gate.open(life.order.generation, life.at, life.plan))
    co_return Status(Code::kAborted, "a newer generation was prepared before this one began");
  if (is_planned) parts_.port.switched(life.order.generation, life.at);
  life.first_step = life.at.step;
  world_.note_installed({parts_.process.name(), life.order.member, life.order.generation, life.at,
                         state_, life.track});
  co_return Status::ok();
}

Task<Status> Trainer::connect(Life& life, int64_t deadline_ms) {
  generation_ = life.order.generation;
  is_writer_ = life.is_writer;
  std::vector<MemberId> members;
  for (const wire::MemberInfo& m : life.order.start.members()) members.push_back(m.member());
  co_await waiter_.sleep(0, 5);
  life.collective =
      std::make_unique<Collective>(Collective::Parts{world_, waiter_, segment_, &bad_sums_},
                                   life.order.generation, members, life.rank);
  co_return co_await life.collective->connect(deadline_ms);
}

Task<Status> Trainer::install(Life& life) {
  const wire::Start& start = life.order.start;
  if (start.source().fresh()) {
    state_ = initial_state(world_.seed);
  } else if (!start.source().checkpoint_path().empty()) {
    co_return co_await install_checkpoint(life);
  }
  const auto root = transfer_root(start);
  if (root) {
    Status status = co_await transfer(life, *root);
    if (!status.is_ok()) co_return status;
  }
  if (state_.step != life.at.step)
    co_return Status(Code::kInternal,
                     "this worker's state is of step " + std::to_string(state_.step) +
                         ", the generation resumes at step " + std::to_string(life.at.step));
  co_return Status::ok();
}

// The source reads what it publishes once. A joiner installs it in two halves, so that a transfer
// that is cut off in between leaves a torn state.
Task<Status> Trainer::transfer(Life& life, uint32_t root) {
  const bool is_root = life.rank == root;
  Segment::StateCopy copy;
  if (is_root) {
    copy.at = life.at;
    copy.halves = {state_.hash & 0xffffffffu, state_.hash >> 32};
    copy.hash = state_.hash;
    copy.track = life.track;
  }
  const bool is_receiver = joins(life.order.start, life.order.member);
  world_.moment(Moment::kTransfer, parts_.process.name());
  Status status = co_await life.collective->broadcast(root, &copy);
  if (!status.is_ok()) co_return status;
  if (!is_receiver) co_return Status::ok();
  const uint64_t low = copy.halves[0];
  if (LOCKSTEP_BUG(kTornTransferInstalled))
    state_.hash = low;
  else
    parts_.gate.lost_state();
  co_await waiter_.sleep(0, 20);
  const uint64_t hash = (copy.halves[1] << 32) | low;
  if (hash != copy.hash) co_return Status(Code::kBadData, "the transferred state is damaged");
  if (is_over(life.order.generation)) co_return Status(Code::kAborted, "closed in a transfer");
  state_ = {copy.at.step, hash};
  life.at = copy.at;
  life.track = copy.track;
  if (LOCKSTEP_BUG(kTrackOfJoinerFromStart)) life.track = track_of(life.order.start.evals());
  life.plan.end_with(life.track, life.order.start.total_steps());
  co_return Status::ok();
}

}  // namespace lockstep::sim
