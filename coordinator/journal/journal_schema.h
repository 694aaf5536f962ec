// The tables of DIR/journal.db. Unsigned integers are stored by their bits.
//
// Thread-safety: constants.
#pragma once

#include <cstdint>

namespace lockstep::coordinator {

// In PRAGMA user_version. Lockstep reads journals from kOldestJournalVersion on. A coordinator that
// opens an older one to go on with it adds what the journal lacks, and says so
// (journal_upgrade.h). Lockstep refuses other numbers.
inline constexpr uint64_t kJournalVersion = 7;
inline constexpr uint64_t kOldestJournalVersion = 4;

// Version 5. The rest of a rank's report of an evaluation: lockstep.wire.EvalReport. It is a table
// of its own, so a journal that gets it keeps its rows and their checksum.
inline constexpr char kEvalReportsTable[] = R"sql(
CREATE TABLE eval_reports(step INTEGER, generation INTEGER, report BLOB NOT NULL,
                          PRIMARY KEY(step, generation)) WITHOUT ROWID;
)sql";

// Version 6. The part of a step beyond the columns of `steps`: lockstep.wire.StepRecord with
// nothing else in it. No row: nothing. It is a table of its own for the same reason.
inline constexpr char kStepReportsTable[] = R"sql(
CREATE TABLE step_reports(step INTEGER, generation INTEGER, report BLOB NOT NULL,
                          PRIMARY KEY(step, generation)) WITHOUT ROWID;
)sql";

// Version 7. Summaries of closed pieces of steps (step_piece.h). content: the sum of the hashes of
// the rows of `steps` and `step_reports` in [first_step, last_step), of all generations. The other
// sums are over the surviving lineage up to last_step. text: its lines in history.jsonl, and their
// XXH3. bins: CurveBin after CurveBin.
inline constexpr char kStepPiecesTable[] = R"sql(
CREATE TABLE step_pieces(first_step INTEGER PRIMARY KEY, last_step INTEGER NOT NULL,
                         content INTEGER NOT NULL, samples INTEGER NOT NULL,
                         correct INTEGER NOT NULL, wall_us INTEGER NOT NULL,
                         steady_samples INTEGER NOT NULL, steady_correct INTEGER NOT NULL,
                         steady_wall_us INTEGER NOT NULL, generation INTEGER NOT NULL,
                         cold_left INTEGER NOT NULL, useful_us INTEGER NOT NULL,
                         usual_us INTEGER NOT NULL, text_bytes INTEGER NOT NULL,
                         text_hash INTEGER NOT NULL, bins BLOB NOT NULL);
)sql";

// How many of the newest events the journal keeps.
inline constexpr uint64_t kJournalEvents = 10'000;

inline constexpr char kJournalSchema[] = R"sql(
-- What is frozen when the first generation starts.
CREATE TABLE identity(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

-- One row: journal_chain.h.
CREATE TABLE chain(id INTEGER PRIMARY KEY CHECK(id = 1), lineage TEXT NOT NULL,
                   sequence INTEGER NOT NULL, content INTEGER NOT NULL, digest INTEGER NOT NULL);

-- Incarnations of the coordinator, with the whole job of each. last_wall_ms: of its last commit,
-- as if nobody had set the clock since the term began.
CREATE TABLE terms(term INTEGER PRIMARY KEY, started_wall_ms INTEGER NOT NULL,
                   last_wall_ms INTEGER NOT NULL, pid INTEGER NOT NULL, job TEXT NOT NULL);

CREATE TABLE members(member INTEGER PRIMARY KEY, term INTEGER NOT NULL, node TEXT NOT NULL,
                     local_rank INTEGER NOT NULL, pid INTEGER NOT NULL,
                     registered_wall_ms INTEGER NOT NULL);

-- state: 0 prepared, 1 started, 2 closed, 3 abandoned, 4 planned. members: ids by rank, with
-- commas. start: lockstep.wire.Start as it was pushed; empty before.
CREATE TABLE generations(generation INTEGER PRIMARY KEY, term INTEGER NOT NULL,
                         state INTEGER NOT NULL, members TEXT NOT NULL,
                         changed_wall_ms INTEGER NOT NULL, start BLOB NOT NULL);

CREATE TABLE slot_maps(generation INTEGER, rank INTEGER, member INTEGER NOT NULL,
                       slot_begin INTEGER NOT NULL, slot_end INTEGER NOT NULL,
                       PRIMARY KEY(generation, rank)) WITHOUT ROWID;

-- Steps [first_step, last_step) were done by this generation; last is NULL while it runs.
CREATE TABLE ledger(generation INTEGER PRIMARY KEY, first_step INTEGER NOT NULL,
                    first_phase INTEGER NOT NULL, last_step INTEGER, last_phase INTEGER,
                    rolled_back INTEGER NOT NULL, reason TEXT NOT NULL);

-- Batches as each rank sent them; records: lockstep.wire.StepRecords. The digests of a step's slots
-- are in the first batch that came with it. first_step = last_step + 1: nothing of it survives, and
-- only its number is kept.
CREATE TABLE record_batches(generation INTEGER, member INTEGER, batch INTEGER,
                            first_step INTEGER NOT NULL, last_step INTEGER NOT NULL,
                            records BLOB NOT NULL,
                            PRIMARY KEY(generation, member, batch)) WITHOUT ROWID;
CREATE INDEX batches_by_member ON record_batches(member, batch);
CREATE INDEX batches_by_step ON record_batches(generation, last_step);

-- Records that agreed with the plan and were deleted: digest is chained over the digests of all
-- slots of the steps [first_step, last_step), in order. What of a fold survives says the ledger, as
-- for the batches.
CREATE TABLE folds(generation INTEGER, first_step INTEGER, last_step INTEGER NOT NULL,
                   samples INTEGER NOT NULL, digest INTEGER NOT NULL,
                   PRIMARY KEY(generation, first_step)) WITHOUT ROWID;

-- The number of the last batch of each member that was deleted so.
CREATE TABLE folded_batches(member INTEGER PRIMARY KEY, batch INTEGER NOT NULL);

-- Steps that every rank of their generation has reported, or one rank if a later generation resumed
-- after them. step is 0-based.
CREATE TABLE steps(step INTEGER, generation INTEGER, epoch INTEGER NOT NULL,
                   samples INTEGER NOT NULL, correct INTEGER NOT NULL, loss REAL, lr REAL,
                   skipped INTEGER NOT NULL, common_hash INTEGER NOT NULL, wall_us INTEGER NOT NULL,
                   PRIMARY KEY(step, generation)) WITHOUT ROWID;

CREATE TABLE evals(step INTEGER, generation INTEGER, epoch INTEGER NOT NULL,
                   samples INTEGER NOT NULL, correct INTEGER NOT NULL, loss REAL,
                   rolled_back INTEGER NOT NULL DEFAULT 0,
                   PRIMARY KEY(step, generation)) WITHOUT ROWID;

-- state: 0 complete, 1 dropped, 2 rolled back.
CREATE TABLE checkpoints(name TEXT PRIMARY KEY, step INTEGER NOT NULL, generation INTEGER NOT NULL,
                         member INTEGER NOT NULL, manifest_sha256 TEXT NOT NULL,
                         weights_sha256 TEXT NOT NULL, bytes INTEGER NOT NULL,
                         final INTEGER NOT NULL, state INTEGER NOT NULL) WITHOUT ROWID;

-- Comparisons of what the workers hold and compute. node, local_rank: whose results were wrong; an
-- empty node where they agreed, or where nobody could tell. goes_on: they differed, and by policy the
-- lineage was not cut.
CREATE TABLE checks(step INTEGER, generation INTEGER, node TEXT, local_rank INTEGER,
                    agreed INTEGER NOT NULL, rolled_back INTEGER NOT NULL DEFAULT 0,
                    goes_on INTEGER NOT NULL,
                    PRIMARY KEY(step, generation, node, local_rank)) WITHOUT ROWID;

-- What each place said where nobody could tell who was right. subject: 0 weights, 1 gradient of a
-- slot, 2 slice of a sum.
CREATE TABLE witnesses(step INTEGER, generation INTEGER, subject INTEGER, node TEXT,
                       local_rank INTEGER, hash INTEGER NOT NULL,
                       PRIMARY KEY(step, generation, subject, node, local_rank)) WITHOUT ROWID;

-- Slots that every generation newer than this one leaves out. step is 0-based.
CREATE TABLE skips(step INTEGER, slot_begin INTEGER, slot_end INTEGER, generation INTEGER,
                   reason TEXT NOT NULL,
                   PRIMARY KEY(step, slot_begin, slot_end, generation)) WITHOUT ROWID;

CREATE TABLE rollbacks(id INTEGER PRIMARY KEY, wall_ms INTEGER NOT NULL, to_step INTEGER NOT NULL,
                       to_phase INTEGER NOT NULL, checkpoint TEXT NOT NULL, reason TEXT NOT NULL);

-- What holds until the run is resumed. workers: how many are wanted. end: how it ended. script code,
-- script state: hashes of a script's code, and of the state that it makes (which a resume keeps).
CREATE TABLE settings(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE events(id INTEGER PRIMARY KEY, wall_ms INTEGER NOT NULL, generation INTEGER NOT NULL,
                    kind TEXT NOT NULL, text TEXT NOT NULL);
)sql";

}  // namespace lockstep::coordinator
