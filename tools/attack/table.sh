# kill -9 of processes that build and read one table while its files are replaced: every table that is served
# is whole, and of files that were there. $TABLE_KILLS kills (1000).
attack_table() {
  local python=${UNIDLE_PYTHON:-$UNIDLE_SOURCE/.venv/bin/python}
  command -v "$python" >/dev/null || python=python3
  "$python" -W ignore "$UNIDLE_SOURCE/python/tests/table_kills.py" --kills "${TABLE_KILLS:-1000}"
}
