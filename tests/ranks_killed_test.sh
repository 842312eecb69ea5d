#!/usr/bin/env bash
# kill -9 of one of 2 to 4 processes that train together, at random points: the others end by themselves, and
# the resumed run ends with the loss of an undisturbed one. $KILLS kills; tools/attack.sh has more.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
train="$UNIDLE_BIN/unidle-train"
[ -x "$train" ] || { echo "skipped: built without torch"; exit 77; }
kills=${KILLS:-3}
RANDOM=${SEED:-$$}
export OMP_NUM_THREADS=1

printf 'workload: recsys\n' >config.yaml
settings=(prepare.source=generated prepare.samples=2000 model.width=64 device=cpu cpu.threads=1 batch.size=12
  validation.interval=0 checkpoint.interval=480 checkpoint.folder=saved ranks.timeout_s=60 train.samples=9600)
check "preparation" "$train" config.yaml "${settings[@]}" --prepare

# start WORLD [OPTION ...]: starts all processes, whose ids are in `processes`.
start() {
  local world=$1 port=$((21000 + RANDOM % 11000)) rank
  shift
  processes=()
  for ((rank = 0; rank < world; ++rank)); do
    RANK=$rank WORLD_SIZE=$world LOCAL_RANK=$rank LOCAL_WORLD_SIZE=$world MASTER_ADDR=127.0.0.1 MASTER_PORT=$port \
      "$train" config.yaml "${settings[@]}" "$@" --format json -q >out.$rank 2>err.$rank &
    processes+=($!)
  done
}

# ended: waits for all; returns whether all succeeded.
ended() {
  local process good=0
  for process in "${processes[@]}"; do wait "$process" 2>/dev/null || good=1; done
  return $good
}

# The end of a run, to the last bit.
told() { sed -E 's/.*("loss_last":[^,]*),("metric":\{[^}]*\}).*/\1 \2/' out.0; }

# The processes train, and one of them is killed at a random time after the first checkpoint.
kill_one() {
  local world=$1 victim waited
  shift
  start "$world" "$@"
  for ((waited = 0; waited < 600; ++waited)); do
    [ -e saved/checkpoint.pt ] && break
    kill -0 "${processes[0]}" 2>/dev/null || break
    sleep 0.05
  done
  sleep "0.$((RANDOM % 10))"
  victim=$((RANDOM % world))
  if kill -9 "${processes[$victim]}" 2>/dev/null; then
    echo "killed rank $victim of $world"
    killed=$((killed + 1))
  fi
  ended || return 0
  [ -s out.0 ]  # it was done before
}

killed=0
for ((number = 0; killed < kills && number < 10 * kills; ++number)); do
  world=$((2 + number % 3))
  if [ ! -e "whole.$world" ]; then
    rm -rf saved
    start "$world"
    ended || fail "$world processes: $(cat err.*)"
    told >"whole.$world"
  fi
  rm -rf saved
  kill_one "$world"
  [ $((RANDOM % 2)) = 0 ] && [ -e saved/checkpoint.pt ] && kill_one "$world" --resume saved  # and once more
  if [ -e saved/checkpoint.pt ]; then
    start "$world" --resume saved
  else
    start "$world"
  fi
  ended || fail "$world processes, resumed: $(cat err.*)"
  # A resumed run with nothing left to do has no loss; its metrics suffice.
  if grep -q '"loss_last":null' out.0; then
    [ "$(told | sed 's/.* //')" = "$(sed 's/.* //' "whole.$world")" ] || fail "$world processes: other metrics"
  else
    [ "$(told)" = "$(cat "whole.$world")" ] || fail "$world processes: $(told), undisturbed $(cat "whole.$world")"
  fi
done
echo "$killed kills"
[ "$killed" -ge "$kills" ] || fail "only $killed of $kills kills"
finish
