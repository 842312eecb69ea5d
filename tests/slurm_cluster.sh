# Sourced after lib.sh: a real Slurm of four nodes on this machine, on loopback, with munge; everything in its
# own folder, ended when the test ends. Skips the test without a Slurm. Each node has two CPUs, two GPUs
# (simulated by files) and 2000 MB.
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
  # Under another name it does not recognise itself, and accounting of a step crashes it.
  stepd=(-d "$folder/bin/slurmstepd")
elif command -v slurmctld >/dev/null && command -v munged >/dev/null; then
  plugins=""
  stepd=()
else
  echo "skipped: there is no Slurm here (./dev setup unpacks one)"
  exit 77
fi

free_ports() {  # COUNT: that many consecutive port numbers that are unused now
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

# Ends the daemons of this test.
stop_cluster() {
  local pid pids
  mapfile -t pids < <(cat "$cluster"/*.pid 2>/dev/null)
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null; done
  for pid in "${pids[@]}"; do
    for _ in $(seq 200); do kill -0 "$pid" 2>/dev/null || break; sleep 0.05; done
  done
  rmdir /sys/fs/cgroup/memory/slurm_n[1-4]/* /sys/fs/cgroup/memory/slurm_n[1-4] 2>/dev/null  # the empty ones
  rm -rf "$folder"
}

# Slurm's accounts: a separate database and the daemon that keeps them. With accounts=yes start_cluster begins
# with it, and the controller forgets jobs some seconds after their end. Skips the test without a database
# server.
start_accounts() {  # PORT of the database; the daemon uses the next one
  local programs=$slurm_root/usr shared
  if ! command -v mariadbd >/dev/null || ! command -v slurmdbd >/dev/null; then
    echo "skipped: there is no Slurm with accounts here (./dev setup unpacks one)"
    exit 77
  fi
  mkdir -p "$cluster/accounts"
  shared=$programs/share/mysql
  [ -d "$shared" ] || shared=/usr/share/mysql
  mariadbd --no-defaults --user="$(id -un)" --datadir="$cluster/accounts" --lc-messages-dir="$shared" \
    --character-sets-dir="$shared/charsets" --socket="$cluster/accounts.sock" --bind-address=127.0.0.1 \
    --port="$1" --skip-grant-tables --skip-log-bin --innodb-buffer-pool-size=16M \
    --pid-file="$cluster/mariadbd.pid" >"$cluster/log/mariadbd.log" 2>&1 &
  for _ in $(seq 200); do [ -S "$cluster/accounts.sock" ] && break; sleep 0.1; done
  cat >"$cluster/slurmdbd.conf" <<EOF
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort=$(($1 + 1))
SlurmUser=$(id -un)
$plugins
AuthType=auth/munge
AuthInfo=socket=$cluster/munge.sock
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort=$1
StorageUser=root
StorageLoc=accounts
PidFile=$cluster/slurmdbd.pid
LogFile=$cluster/log/slurmdbd.log
EOF
  chmod 600 "$cluster/slurmdbd.conf"
  SLURM_CONF=$cluster/slurm.conf slurmdbd || return 1
  for _ in $(seq 20); do timeout 10 sacctmgr -i add cluster unidle >/dev/null 2>&1 && return; sleep 0.2; done
  tail -n 20 "$cluster"/log/slurmdbd.log >&2
  return 1
}

# A memory limit for jobs, enforced by the kernel: control groups of version 1, which only root may create.
# Slurm names them after job ids, which begin at a random number, so parallel clusters do not collide.
can_limit_memory() { [ "$(id -u)" = 0 ] && [ -w /sys/fs/cgroup/memory/tasks ]; }

limit_memory() {
  echo "CgroupPlugin=cgroup/v1
CgroupMountpoint=/sys/fs/cgroup
ConstrainRAMSpace=yes" >"$cluster/cgroup.conf"
}

# With memory=kernel the kernel ends jobs that exceed their memory, with memory=slurm slurmstepd does.
start_cluster() {
  local task=task/none accounted="" host port user accounting=AccountingStorageType=accounting_storage/none remember=300
  host=$(hostname -s)
  user=$(id -un)
  cluster=$folder/cluster
  port=$(free_ports 7)
  mkdir -p "$cluster"/{state,spool,log}
  chmod 755 "$folder" "$cluster"
  trap stop_cluster EXIT
  head -c 1024 /dev/urandom >"$cluster/munge.key"
  chmod 600 "$cluster/munge.key"
  munged --force --key-file="$cluster/munge.key" --socket="$cluster/munge.sock" --pid-file="$cluster/munged.pid" \
    --log-file="$cluster/log/munged.log" --seed-file="$cluster/munge.seed" || return 1
  if [ "${accounts:-}" = yes ]; then
    remember=3
    accounting="AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePass=$cluster/munge.sock
AccountingStoragePort=$((port + 6))
AccountingStorageTRES=gres/gpu
AccountingStoreFlags=job_comment"
  fi
  case "${memory:-}" in
    kernel) task=task/cgroup; limit_memory ;;
    slurm) accounted=JobAcctGatherParams=OverMemoryKill ;;
  esac
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
TaskPlugin=$task
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=1
$accounted
FirstJobId=$((100000 + (RANDOM * 32768 + RANDOM) % 60000000))
$accounting
GresTypes=gpu
ReturnToService=2
MpiDefault=none
KillWait=2
MinJobAge=$remember
SchedulerParameters=sched_interval=1,batch_sched_delay=0
NodeName=n[1-4] NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + 1))-$((port + 4)) CPUs=2 RealMemory=2000 Gres=gpu:2 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=60 State=UP
EOF
  printf 'NodeName=n[1-4] Name=gpu File=/dev/null\nNodeName=n[1-4] Name=gpu File=/dev/zero\n' >"$cluster/gres.conf"
  export SLURM_CONF=$cluster/slurm.conf
  if [ "${accounts:-}" = yes ]; then start_accounts $((port + 5)) || return 1; fi
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

# run_again ID: starts a requeued job soon; Slurm would wait for minutes. A node refuses a job whose end there
# is unsettled, and Slurm then holds it: it is released until it runs.
run_again() {
  local id=$1 told=""
  for _ in $(seq 900); do
    case "$(state_of "$id"):$(squeue -h -j "$id" -o %r 2>/dev/null)" in
      PENDING:*[Hh]eld*) scontrol release "$id"; told="" ;;
      PENDING:*)
        [ -n "$told" ] || scontrol update JobId="$id" StartTime=now+5
        told=yes
        ;;
      REQUEUED:* | REQUEUE_HOLD:* | COMPLETING:*) ;;
      *) [ -z "$told" ] || return 0 ;;
    esac
    sleep 0.2
  done
  fail "job $id does not begin again: $(state_of "$id")"
  return 1
}
