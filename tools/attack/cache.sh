# kill -9 of processes that put, compute, read, prune, warm and lose the index of two feature caches: every
# entry is right, stored entries stay, nothing hangs. $CACHE_KILLS kills (1000).
attack_cache() {
  local python=${UNIDLE_PYTHON:-$UNIDLE_SOURCE/.venv/bin/python}
  command -v "$python" >/dev/null || python=python3
  "$python" -W ignore "$UNIDLE_SOURCE/python/tests/cache_kills.py" --kills "${CACHE_KILLS:-1000}"
}
