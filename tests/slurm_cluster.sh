# Sourced after lib.sh: a real Slurm of four nodes on this machine, on loopback, with munge; everything in a
# folder of its own, ended when the test ends. Skips the test where there is no Slurm. Each node claims two
# CPUs, two GPUs (files that stand for them) and 2000 MB.
slurm_root=$UNIDLE_SOURCE/.venv/slurm
if [ -x "$slurm_root/usr/sbin/slurmctld-wlm" ]; then
  libraries=$slurm_root/usr/lib/$(uname -m)-linux-gnu
  mkdir -p "$folder/bin"
  for program in "$slurm_root"/usr/bin/* "$slurm_root"/usr/sbin/*; do
    name=$(basename "$program")
    ln -sf "$program" "$folder/bin/${name%-wlm}"
  done
  export PATH="$folder/bin:$PATH" LD_LIBRARY_PATH="$libraries:$libraries/slurm-wlm"
  plugins="PluginDir=$libraries/slurm-wlm"
  stepd=(-d "$slurm_root/usr/sbin/slurmstepd-wlm")
elif command -v slurmctld >/dev/null && command -v munged >/dev/null; then
  plugins=""
  stepd=()
else
  echo "skipped: there is no Slurm here (./dev setup unpacks one)"
  exit 77
fi

free_ports() {  # COUNT: that many numbers, one after another, of which nobody uses one now
  python3 - "$1" <<'PROGRAM'
import random, socket, sys
count = int(sys.argv[1])
while True:
    first = random.randrange(20000, 60000)
    sockets = []
    try:
        for port in range(first, first + count):
            sockets.append(socket.socket())
            sockets[-1].bind(("127.0.0.1", port))
        print(first)
        break
    except OSError:
        pass
    finally:
        for s in sockets:
            s.close()
PROGRAM
}

# The daemons of this test end with it.
stop_cluster() {
  local pid pids
  mapfile -t pids < <(cat "$cluster"/*.pid 2>/dev/null)
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null; done
  for pid in "${pids[@]}"; do
    for _ in $(seq 200); do kill -0 "$pid" 2>/dev/null || break; sleep 0.05; done
  done
  rm -rf "$folder"
}

start_cluster() {
  local host port user
  host=$(hostname -s)
  user=$(id -un)
  cluster=$folder/cluster
  port=$(free_ports 5)
  mkdir -p "$cluster"/{state,spool,log}
  chmod 755 "$folder" "$cluster"
  trap stop_cluster EXIT
  head -c 1024 /dev/urandom >"$cluster/munge.key"
  chmod 600 "$cluster/munge.key"
  munged --force --key-file="$cluster/munge.key" --socket="$cluster/munge.sock" --pid-file="$cluster/munged.pid" \
    --log-file="$cluster/log/munged.log" --seed-file="$cluster/munge.seed" || return 1
  cat >"$cluster/slurm.conf" <<EOF
ClusterName=unidle
SlurmctldHost=$host(127.0.0.1)
SlurmUser=$user
SlurmdUser=$user
$plugins
AuthType=auth/munge
AuthInfo=socket=$cluster/munge.sock
CredType=cred/munge
StateSaveLocation=$cluster/state
SlurmdSpoolDir=$cluster/spool/%n
SlurmctldPidFile=$cluster/slurmctld.pid
SlurmdPidFile=$cluster/slurmd.%n.pid
SlurmctldLogFile=$cluster/log/slurmctld.log
SlurmdLogFile=$cluster/log/slurmd.%n.log
SlurmctldPort=$port
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
GresTypes=gpu
ReturnToService=2
MpiDefault=none
KillWait=2
SchedulerParameters=sched_interval=1,batch_sched_delay=0
NodeName=n[1-4] NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + 1))-$((port + 4)) CPUs=2 RealMemory=2000 Gres=gpu:2 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=60 State=UP
EOF
  printf 'NodeName=n[1-4] Name=gpu File=/dev/null\nNodeName=n[1-4] Name=gpu File=/dev/zero\n' >"$cluster/gres.conf"
  export SLURM_CONF=$cluster/slurm.conf
  slurmctld -c || return 1
  for node in n1 n2 n3 n4; do slurmd "${stepd[@]}" -N $node || return 1; done
  for _ in $(seq 200); do
    if [ "$(sinfo -h -t idle -o %D 2>/dev/null)" = 4 ] && timeout 60 srun --mem=100 true; then return 0; fi
    sleep 0.1
  done
  sinfo -R >&2
  tail -n 20 "$cluster"/log/*.log >&2
  return 1
}

state_of() { scontrol -o show job "$1" 2>/dev/null | grep -o 'JobState=[A-Z_]*' | head -n 1 | cut -d= -f2; }

# wait_for ID STATE...: until the job is in one of them; at most three minutes.
wait_for() {
  local id=$1 state wanted
  shift
  for _ in $(seq 900); do
    state=$(state_of "$id")
    for wanted in "$@"; do
      if [ "$state" = "$wanted" ]; then return 0; fi
    done
    sleep 0.2
  done
  fail "job $id is $state, not $*"
  return 1
}
