# kill -9 of the observed process, of unidle and of both, at random points: the record opens and has every
# step.
# $KILLS kills (1000) of the shim's ring and marks, $TORCH_KILLS (30) of a real training.
attack_kills() {
  local python=${UNIDLE_PYTHON:-$UNIDLE_SOURCE/.venv/bin/python} failures=0
  command -v "$python" >/dev/null || python=python3
  "$python" "$UNIDLE_SOURCE/python/tests/kills.py" --kills "${KILLS:-1000}" --program shim || failures=1
  if "$python" -c 'import torch' 2>/dev/null; then
    "$python" "$UNIDLE_SOURCE/python/tests/kills.py" --kills "${TORCH_KILLS:-30}" --program torch --at-once 2 || failures=1
  fi
  return $failures
}
