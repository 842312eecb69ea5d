// The tables of a record. docs/record-format.md describes every one; a test compares the two.
#pragma once

#include <cstdint>

namespace unidle::record {

/// "uidl" in the file's header. `file` and the reader recognise a record by it.
constexpr std::int64_t kApplicationId = 0x7569646c;

/// What errors call a record.
constexpr const char* kRecordKind = "unidle record";

/// Tables are STRICT, so that a damaged or foreign value cannot pass as a number. Rows are in order of arrival. There
/// are no indexes beyond the primary keys, because a record is read whole.
constexpr const char* kSchemaSql = R"sql(
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE steps (
  process INTEGER NOT NULL, idx INTEGER NOT NULL, t_ns INTEGER NOT NULL, duration_ns INTEGER NOT NULL,
  samples INTEGER NOT NULL, micro_batches INTEGER NOT NULL, input_ns INTEGER, transfer_ns INTEGER, forward_ns INTEGER,
  backward_ns INTEGER, optimizer_ns INTEGER, sync_ns INTEGER, syncs INTEGER, loss ANY, samples_before INTEGER) STRICT;
CREATE TABLE spans (
  kind TEXT NOT NULL, process INTEGER NOT NULL, t_ns INTEGER NOT NULL, duration_ns INTEGER NOT NULL,
  samples INTEGER NOT NULL) STRICT;
CREATE TABLE sample_work (
  process INTEGER NOT NULL, thread INTEGER NOT NULL, t_ns INTEGER NOT NULL, samples INTEGER NOT NULL,
  busy_ns INTEGER NOT NULL, slowest_ns INTEGER NOT NULL, bytes INTEGER NOT NULL,
  PRIMARY KEY (t_ns, process, thread)) STRICT, WITHOUT ROWID;
CREATE TABLE metrics (
  name TEXT NOT NULL, t_ns INTEGER NOT NULL, step INTEGER NOT NULL, samples INTEGER NOT NULL, value REAL) STRICT;
CREATE TABLE settings (
  knob TEXT NOT NULL, value TEXT NOT NULL, source TEXT NOT NULL, location TEXT NOT NULL) STRICT;
CREATE TABLE notes (t_ns INTEGER NOT NULL, process INTEGER NOT NULL, body TEXT NOT NULL) STRICT;
CREATE TABLE output (stream TEXT PRIMARY KEY, bytes BLOB NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE series (id INTEGER PRIMARY KEY, name TEXT NOT NULL, unit TEXT NOT NULL, subject TEXT NOT NULL) STRICT;
CREATE TABLE points (
  series INTEGER NOT NULL, t_ns INTEGER NOT NULL, value REAL, PRIMARY KEY (series, t_ns)) STRICT, WITHOUT ROWID;
CREATE TABLE positions (
  file TEXT PRIMARY KEY, process INTEGER NOT NULL, process_start INTEGER NOT NULL, started_ns INTEGER NOT NULL,
  taken INTEGER NOT NULL) STRICT, WITHOUT ROWID;
)sql";

}  // namespace unidle::record
