#include "coordinator/journal/journal_fold.h"

#include "coordinator/journal/journal_reader.h"

namespace lockstep::coordinator {
namespace {

// The four numbers: generation, first, last, last.
constexpr char kWholeBatches[] =
    " FROM record_batches INDEXED BY batches_by_step WHERE generation = ? AND last_step >= ? AND "
    "last_step < ? AND first_step <= last_step AND first_step >= ?";

// Deletes the batches that lie in the fold as a whole.
Status delete_whole(Database& database, const FoldEntry& fold) {
  LOCKSTEP_ASSIGN_OR_RETURN(
      const auto keep, database.prepare("INSERT INTO folded_batches SELECT member, max(batch)" +
                                        std::string(kWholeBatches) +
                                        " GROUP BY member ON CONFLICT(member) DO UPDATE SET "
                                        "batch = max(batch, excluded.batch)"));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto remove,
                            database.prepare("DELETE" + std::string(kWholeBatches)));
  for (Statement* statement : {keep.get(), remove.get()}) {
    LOCKSTEP_RETURN_IF_ERROR(
        statement->bind(fold.generation).bind(fold.first).bind(fold.last).bind(fold.first).run());
  }
  return Status::ok();
}

Status shorten(Database& database, const FoldEntry& fold, const RecordsEntry& batch) {
  wire::StepRecords rest;
  rest.set_batch(batch.batch);
  for (const wire::StepRecord& record : batch.records) {
    if (record.step() < fold.first || record.step() >= fold.last) *rest.add_records() = record;
  }
  LOCKSTEP_ASSIGN_OR_RETURN(
      const auto update,
      database.prepare("UPDATE record_batches SET first_step = ?, last_step = ?, records = ? "
                       "WHERE generation = ? AND member = ? AND batch = ?"));
  const std::string bytes = rest.SerializeAsString();
  return update->bind(rest.records(0).step())
      .bind(rest.records(rest.records_size() - 1).step())
      .bind_blob(bytes)
      .bind(batch.generation)
      .bind(batch.member)
      .bind(batch.batch)
      .run();
}

}  // namespace

Status fold_batches(Database& database, const FoldEntry& fold) {
  LOCKSTEP_RETURN_IF_ERROR(delete_whole(database, fold));
  // The batches that are left reach beyond one end of the fold.
  LOCKSTEP_ASSIGN_OR_RETURN(const auto batches,
                            read_batches(database, fold.generation, fold.first, fold.last));
  for (const RecordsEntry& batch : batches) {
    LOCKSTEP_RETURN_IF_ERROR(shorten(database, fold, batch));
  }
  return Status::ok();
}

}  // namespace lockstep::coordinator
