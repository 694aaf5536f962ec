// manifest.json of a checkpoint's directory, which the writer writes last. It lists the files of
// the checkpoint with size and SHA-256. Other files do not belong to the checkpoint.
//
//   {"format": 1, "step": 1500, "generation": 2, "member": 4, "seed": 1, "slots": 4,
//    "global_batch": 128, "epoch": 3, "phase": 0, "schedule": {...ScheduleSpec...},
//    "dataset_fingerprint": "...", "numerics_fingerprint": ["key=value", ...],
//    "weights_sha256": "...", "state_sha256": "...",
//    "lineage": {"id": "32 hex digits", "sequence": 812, "run_id": "...",
//                "resumed_from": "step-..." or "", "generation_first_step": 0},
//    "files": [{"name": "model.safetensors", "bytes": 206922, "sha256": "..."}, ...],
//    "skipped": [...SkippedSlots...], "proof": [[1000, 128000, 7...], ...] or null,
//    "unacknowledged": [...StepRecords...], "self_sha256": "...",
//    "legend": {...comm/run/job/data_legend.h...}, "ends_at": 812, "after_edge": true}
//
// lineage.id is the id of the journal (coordinator/journal/journal.h), and `sequence` the number of
// a commit that the journal had when the writer began: a journal without that commit has lost it.
// Lockstep rebuilds a lost journal from `skipped`, `proof` and `unacknowledged` (term/rebuild.h).
// Format 1 had none of these, except `unacknowledged`. Format 2 had no evaluations there. `legend`
// came later and may be missing. `ends_at` is there where a script has ended the run
// (coordinator/PROTOCOL.md, "An end by the script"): the journal may not have it yet.
// `after_edge` is there only where it is true: the state has seen the script's code between two
// epochs that follows `step` (Phase::kEdge).
//
// self_sha256 is over the compact JSON of everything else (keys sorted), so that a flipped bit
// shows without the journal. 64-bit integers inside schedule and unacknowledged are strings, as in
// protobuf's JSON mapping.
//
// Errors: kBadData for damage. kConfig for a newer format, because an older program must not guess
// its meaning.
//
// Thread-safety: pure functions and values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "comm/base/ids.h"
#include "comm/base/status.h"
#include "comm/run/checkpoint/step_proof.h"
#include "comm/wire/control.pb.h"

namespace lockstep {

inline constexpr uint32_t kManifestFormat = 3;
inline constexpr char kManifestName[] = "manifest.json";

struct ManifestFile {
  std::string name;  // without '/'
  uint64_t bytes = 0;
  std::string sha256;
  bool operator==(const ManifestFile&) const = default;
};

struct Lineage {
  std::string id = {};    // of the journal; empty: an older Lockstep wrote the checkpoint
  uint64_t sequence = 0;  // a commit that the journal has
  std::string run_id = {};
  std::string resumed_from = {};  // the checkpoint from which the run went on; empty: a fresh start
  Step generation_first_step = 0;
  bool operator==(const Lineage&) const = default;
};

struct Manifest {
  ResumePoint resume;  // `step` steps are applied, `phase` comes next
  bool is_after_edge = false;
  Generation generation = 0;
  MemberId member = 0;
  uint64_t seed = 0;
  uint32_t slots = 0;
  uint64_t global_batch = 0;
  Epoch epoch = 0;  // of the last applied step, for people
  wire::ScheduleSpec schedule;
  std::string dataset_fingerprint;
  std::vector<std::string> numerics_fingerprint;
  std::string weights_sha256;  // weights_hash(state, false)
  std::string state_sha256;    // weights_hash(state, true)
  Lineage lineage;
  std::vector<ManifestFile> files;
  std::vector<wire::SkippedSlots> skipped;  // of the whole run, ascending by step
  Step ends_at = 0;  // = `resume`: the script ended the run there, before the planned end; 0: no
  StepProof proof = StepProof::unknown();         // of the steps before `resume`
  wire::DataLegend legend;                        // of the training data
  std::vector<wire::StepRecords> unacknowledged;  // batches of `member`, not in the journal yet
};

std::string manifest_to_json(const Manifest& manifest);
Result<Manifest> manifest_from_json(std::string_view text);

}  // namespace lockstep
