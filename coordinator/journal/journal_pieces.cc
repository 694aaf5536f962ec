#include "coordinator/journal/journal_pieces.h"

#include <bit>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "comm/base/hash.h"
#include "coordinator/journal/history.h"
#include "coordinator/journal/journal_reader.h"
#include "coordinator/journal/journal_upgrade.h"

namespace lockstep::coordinator {
namespace {

// Bins are stored as they are in memory.
static_assert(sizeof(CurveBin) == 72 && std::endian::native == std::endian::little);

std::string_view bytes_of(const std::vector<CurveBin>& bins) {
  return {reinterpret_cast<const char*>(bins.data()), bins.size() * sizeof(CurveBin)};
}

Result<std::vector<CurveBin>> bins_of(const std::string& bytes) {
  if (bytes.size() % sizeof(CurveBin) != 0)
    return Status(Code::kBadData, "the journal is damaged: a summary of steps has no whole bins");
  std::vector<CurveBin> bins(bytes.size() / sizeof(CurveBin));
  if (!bytes.empty()) std::memcpy(bins.data(), bytes.data(), bytes.size());
  return bins;
}

Result<StepPiece> piece_of(const Statement& row) {
  StepPiece piece;
  piece.first = row.integer(0);
  piece.last = row.integer(1);
  piece.content = row.integer(2);
  piece.totals.all = {row.integer(3), row.integer(4), row.integer(5)};
  piece.totals.steady = {row.integer(6), row.integer(7), row.integer(8)};
  piece.totals.generation = row.integer(9);
  piece.totals.cold_left = static_cast<uint32_t>(row.integer(10));
  piece.totals.useful_us = row.integer(11);
  piece.totals.usual_us = row.integer(12);
  piece.text_bytes = row.integer(13);
  piece.text_hash = row.integer(14);
  LOCKSTEP_ASSIGN_OR_RETURN(piece.bins, bins_of(row.text(15)));
  return piece;
}

Status write_piece(Database& database, const StepPiece& piece) {
  LOCKSTEP_ASSIGN_OR_RETURN(
      const auto insert,
      database.prepare("INSERT INTO step_pieces VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"));
  const StepTotals& totals = piece.totals;
  insert->bind(piece.first).bind(piece.last).bind(piece.content);
  for (const StepTally& sums : {totals.all, totals.steady})
    insert->bind(sums.samples).bind(sums.correct).bind(sums.wall_us);
  insert->bind(totals.generation).bind(uint64_t{totals.cold_left});
  insert->bind(totals.useful_us).bind(totals.usual_us);
  insert->bind(piece.text_bytes).bind(piece.text_hash).bind_blob(bytes_of(piece.bins));
  return insert->run();
}

Result<StepTotals> totals_at(Database& database, Step end) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto rows,
                            database.prepare("SELECT * FROM step_pieces WHERE last_step = ?"));
  LOCKSTEP_ASSIGN_OR_RETURN(const bool has_row, rows->bind(end).step());
  if (!has_row) return StepTotals{};
  LOCKSTEP_ASSIGN_OR_RETURN(const StepPiece piece, piece_of(*rows));
  return piece.totals;
}

// Nothing if a step of it is missing.
Result<std::optional<StepPiece>> summarize(Database& database, Step first,
                                           const StepTotals& totals) {
  StepPiece piece;
  piece.first = first;
  piece.last = first + kPieceSteps;
  piece.totals = totals;
  std::string text;
  const uint64_t width = curve_width(piece.last);
  Step next = first;
  LOCKSTEP_RETURN_IF_ERROR(
      visit_lineage(database, piece.first, piece.last, [&](const StepEntry& step) {
        if (step.step != next) return;
        ++next;
        piece.totals.add(step);
        put_bin(bin_of(step), width, &piece.bins);
        text += history_line(step);
      }));
  if (next != piece.last) return std::optional<StepPiece>();
  piece.text_bytes = text.size();
  piece.text_hash = xxh3_64(text);
  return std::optional(std::move(piece));
}

}  // namespace

Result<Step> closed_steps(Database& database) {
  LOCKSTEP_ASSIGN_OR_RETURN(const bool has_pieces, has_step_pieces(database));
  if (!has_pieces) return Step{0};
  return database.integer("SELECT coalesce(max(last_step), 0) FROM step_pieces");
}

Result<std::vector<StepPiece>> read_pieces(Database& database) {
  std::vector<StepPiece> found;
  LOCKSTEP_ASSIGN_OR_RETURN(const bool has_pieces, has_step_pieces(database));
  if (!has_pieces) return found;
  LOCKSTEP_ASSIGN_OR_RETURN(const auto rows,
                            database.prepare("SELECT * FROM step_pieces ORDER BY first_step"));
  while (true) {
    LOCKSTEP_ASSIGN_OR_RETURN(const bool has_row, rows->step());
    if (!has_row) return found;
    LOCKSTEP_ASSIGN_OR_RETURN(StepPiece piece, piece_of(*rows));
    if (piece.first != end_of(found))
      return Status(Code::kBadData,
                    "the journal is damaged: it has no summary of the steps before " +
                        std::to_string(piece.first));
    found.push_back(std::move(piece));
  }
}

Result<uint64_t> close_pieces(Database& database, JournalChain& chain, Step end,
                              const AliveFn& alive) {
  LOCKSTEP_ASSIGN_OR_RETURN(Step first, closed_steps(database));
  if (first + kPieceSteps > end) return uint64_t{0};
  LOCKSTEP_ASSIGN_OR_RETURN(StepTotals totals, totals_at(database, first));
  uint64_t closed = 0;
  for (; first + kPieceSteps <= end; first += kPieceSteps, ++closed) {
    if (alive) alive();
    LOCKSTEP_ASSIGN_OR_RETURN(auto piece, summarize(database, first, totals));
    if (!piece) break;
    LOCKSTEP_ASSIGN_OR_RETURN(piece->content, chain.sum_steps(piece->first, piece->last));
    LOCKSTEP_RETURN_IF_ERROR(write_piece(database, *piece));
    totals = piece->totals;
  }
  return closed;
}

}  // namespace lockstep::coordinator
