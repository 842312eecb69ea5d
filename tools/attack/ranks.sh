# kill -9 of one of 2 to 4 processes that train together: the resumed run ends like an undisturbed one, to the
# bit. $RANK_KILLS kills (20) of processes started by hand, and as many of processes that torchrun starts and
# restarts.
attack_ranks() {
  local kills=${RANK_KILLS:-20} world failures=0
  KILLS=$kills bash "$UNIDLE_SOURCE/tests/ranks_killed_test.sh" || failures=1
  for world in 2 3 4; do
    WORLD=$world KILLS=$(((kills + world - 2) / 3)) bash "$UNIDLE_SOURCE/tests/torchrun_engine_test.sh" || failures=1
  done
  return $failures
}
