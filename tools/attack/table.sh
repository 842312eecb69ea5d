# kill -9 of processes that build and read one table while its files are replaced: every table served is
# whole, and built from existing files. $TABLE_KILLS kills (1000).
attack_table() {
  local python=${UNIDLE_PYTHON:-$UNIDLE_SOURCE/.venv/bin/python}
  command -v "$python" >/dev/null || python=python3
  "$python" -W ignore "$UNIDLE_SOURCE/python/tests/table_kills.py" --kills "${TABLE_KILLS:-1000}"
}
