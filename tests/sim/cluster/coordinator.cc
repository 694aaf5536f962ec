#include "tests/sim/cluster/coordinator.h"

#include <algorithm>
#include <utility>

#include "comm/base/check.h"
#include "comm/base/planted_bug.h"
#include "coordinator/decide/begin_state.h"
#include "tests/sim/cluster/worker.h"

namespace lockstep::sim {

using coordinator::BeginMode;

SimCoordinator::SimCoordinator(World& world, BeginMode mode)
    : Process(world, "coordinator." + std::to_string(world.next_pid())),
      mode_(mode),
      clock_(loop()),
      logger_(trace_logger(world, name())),
      transport_(world.network.transport(name(), loop())),
      address_{"coordinator", static_cast<uint16_t>(1'000 + pid() % 50'000)} {
  world_.trace.add("begin", name(), static_cast<uint64_t>(mode));
  world_.disk.kill_writer = [this] { die_in_commit(); };
  loop().call_after(5 + static_cast<int64_t>(world_.prng.below(50)), [this] { serve_term(mode_); });
}

SimCoordinator::~SimCoordinator() {
  vanish();
}

void SimCoordinator::vanish() {
  server_.reset();
  history_.reset();
  journal_.reset();
}

void SimCoordinator::die_in_commit() {
  world_.trace.add("killed in a commit", name());
  world_.network.exit(name());  // nothing that follows leaves
  loop().stop();
  world_.loop.post([this] { kill(); });
}

void SimCoordinator::request_stop() {
  world_.trace.add("SIGTERM", name());
  if (server_) server_->stop("SIGTERM");
}

void SimCoordinator::serve_term(BeginMode mode) {
  const Status status = begin(mode);
  if (status.is_ok() || !is_alive() || loop().is_stopped()) return;
  world_.trace.add("not-started", name(), 0, 0, status.message());
  on_last_words(status.message());
  exit(exit_code(status));
}

Status SimCoordinator::begin(BeginMode mode) {
  journal_ = world_.disk.open_journal();
  LOCKSTEP_ASSIGN_OR_RETURN(const coordinator::JournalContents contents, journal_->load());
  LOCKSTEP_ASSIGN_OR_RETURN(const coordinator::Options options,
                            coordinator::resolve_options(world_.job, world_.facts_file,
                                                         contents.identity, world_.directory));
  const auto shelf = world_.disk.open_shelf();
  check_that_losses_are_known(options);
  LOCKSTEP_ASSIGN_OR_RETURN(const coordinator::BegunTerm term,
                            coordinator::begin_term(*journal_, contents, *shelf, options,
                                                    {mode, pid(), "{}", clock_.both()}, *logger_));
  if (world_.facts_file.open()) world_.facts_file = options.facts;
  LOCKSTEP_RETURN_IF_ERROR(open_history(term.beginning));
  if (metrics_ == nullptr) metrics_ = std::make_unique<CoordinatorMetrics>("sim", BuildInfo{});
  coordinator::State state =
      coordinator::begin_state(term.beginning, loop().now_ms(), std::exchange(experience_, {}));
  if (term.is_complete) {
    state.run = coordinator::RunState::kEnded;
    state.exit_code = 0;
    if (mode == BeginMode::kResume) {
      loop().post([this] { exit(0); });
      return Status::ok();
    }
  }
  const auto on_end = [this](int code) {
    on_last_words(server_->state().message);
    loop().post([this, code] { exit(code); });
  };
  const auto on_term_end = [this](const std::string& why) {
    world_.trace.add("term-end", name(), 0, 0, why);
    loop().post([this] {
      if (!LOCKSTEP_BUG(kExperienceLost)) experience_ = server_->state().experience;
      server_.reset();
      history_.reset();
      serve_term(BeginMode::kNextTerm);
    });
  };
  server_ = std::make_unique<coordinator::RunServer>(
      coordinator::RunServer::Parts{
          loop(),
          *journal_,
          *history_,
          *logger_,
          clock_,
          *metrics_,
          on_end,
          on_term_end,
          {},
          evals_.get(),
          [this](const std::string& name) { return world_.disk.see_manifest(name); }},
      options, std::move(state),
      coordinator::EarlierTerms{term.stats, term.earlier_wall_ms,
                                term.beginning.living.has_value()});
  LOCKSTEP_RETURN_IF_ERROR(server_->listen(*transport_, address_, kToken));
  world_.endpoint = World::Endpoint{address_, term.beginning.term, pid()};
  return Status::ok();
}

// Checks that a journal which has lost its end, or all of it, never goes on from the same
// checkpoints.
void SimCoordinator::check_that_losses_are_known(const coordinator::Options& options) {
  const size_t commits = world_.disk.commits().size();
  const auto shelf = world_.disk.open_shelf();
  for (const size_t kept : {commits - std::min<size_t>(commits, 1), commits / 2, size_t{0}}) {
    if (kept == commits) continue;
    const auto cut = world_.disk.open_cut_journal(kept);
    const auto contents = cut->load();
    LOCKSTEP_CHECK(contents.is_ok(), "a journal in memory can be read");
    // The journal's head does not say that there was more: no commit has succeeded, or none is
    // left.
    const bool is_alone = !contents->head || kept == 0;
    if (is_alone && shelf->list()->empty()) continue;
    const auto verdict =
        coordinator::check_term(*cut, *contents, *shelf, options, BeginMode::kResume, *logger_);
    // After a kill inside the last commit, the journal's head is one commit older than the journal.
    const bool is_seen = !contents->head || contents->head->sequence > kept || kept == 0;
    if (is_seen && verdict.status().code() != Code::kBadData)
      world_.fail("A2", "a journal that has lost its end goes on: " + std::to_string(kept) +
                            " of " + std::to_string(commits) + " commits");
  }
}

Status SimCoordinator::open_history(const coordinator::Beginning& beginning) {
  const Step keep = beginning.completed;
  LOCKSTEP_ASSIGN_OR_RETURN(
      evals_, coordinator::EvalFile::open(world_.directory + "/evals.jsonl", /*of_tokens=*/false));
  LOCKSTEP_RETURN_IF_ERROR(evals_->follow(beginning.evals));
  LOCKSTEP_ASSIGN_OR_RETURN(history_,
                            coordinator::History::open(world_.directory + "/history.jsonl", keep));
  LOCKSTEP_RETURN_IF_ERROR(
      journal_->visit_steps(history_->lines(), keep, [this](const coordinator::StepEntry& step) {
        if (step.step == history_->lines()) history_->append(step);
      }));
  return history_->flush();
}

}  // namespace lockstep::sim
