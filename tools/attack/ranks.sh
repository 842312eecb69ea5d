# kill -9 of one of 2 to 4 processes that train together: what is resumed ends as an undisturbed run, to the
# bit. $RANK_KILLS kills (20).
attack_ranks() {
  KILLS=${RANK_KILLS:-20} bash "$UNIDLE_SOURCE/tests/ranks_killed_test.sh"
}
