#include "unidle/logs/failure_line.h"

#include <gtest/gtest.h>

#include <csignal>

#include "unidle/logs/detail/failure_forms.h"
#include "unidle/logs/detail/line_front.h"

namespace unidle::logs {
namespace {

struct Line {
  const char* text;
  Speaker speaker;
  Lack lack = Lack::kNone;
  int signal = 0;
  Blame blame = Blame::kOwn;
  std::optional<int> rank = std::nullopt;
  bool hint = false;
};

using enum Speaker;
constexpr auto kDevice = Lack::kDeviceMemory;
constexpr auto kHost = Lack::kHostMemory;
constexpr auto kShared = Lack::kSharedMemory;
constexpr auto kOwn = Blame::kOwn;
constexpr auto kPeer = Blame::kPeer;
constexpr auto kAfter = Blame::kLauncher;

const Line kFailures[] = {
    {"train.py: error: argument --fp16: expected one argument", kPython},
    {"State: OUT_OF_MEMORY (exit code 0)", kScheduler, kHost, 9},
    {"# State:           FAILED (exit code 1)", kLauncher, Lack::kNone, 0, kAfter},
    {"Darknet error location: ./src/parser.c, parse_yolo(), line #458", kRuntime},
    // Schedulers
    {"slurmstepd: error: StepId=5211.batch exceeded memory limit (1048576 > 524288), being killed", kScheduler, kHost,
     9},
    {"slurmstepd: error: Exceeded job memory limit", kScheduler, kHost, 9},
    {"slurmstepd-n1: error: Detected 1 oom-kill event(s) in StepId=7.0. Some of your processes may have been killed by "
     "the cgroup out-of-memory handler.",
     kScheduler, kHost, 9},
    {"slurmstepd: error: Detected 2 oom_kill events in StepId=440575.0. Some of the step tasks have been OOM Killed.",
     kScheduler, kHost, 9},
    {"srun: error: nid001277: tasks 1-3: Out Of Memory", kScheduler, kHost, 9},
    {"slurmstepd: error: Exceeded step memory limit at some point.", kScheduler, kHost, 0, kOwn, std::nullopt, true},
    {"=>> PBS: job killed: mem 34064868kb exceeded limit 33554432kb", kScheduler, kHost, 9},
    {"TERM_MEMLIMIT: job killed after reaching LSF memory usage limit.", kScheduler, kHost, 9},
    {"Exited with exit code 126.", kLauncher, Lack::kNone, 0, kAfter},
    {"Exited by signal 11.", kLauncher, Lack::kNone, 11},
    {"      Exit Code:    137", kLauncher, Lack::kNone, 9},
    {"      Reason:       OOMKilled", kScheduler, kHost, 9},
    {"trainer-0   0/1   OOMKilled   0   3m12s", kScheduler, kHost, 9},
    {"2024-03-05T10:00:00Z {\"terminated\": {\"exitCode\": 137, \"reason\": \"OOMKilled\"}}", kScheduler, kHost, 9},
    {"Segmentation fault(core dumped)", kShell, Lack::kNone, 11},
    // The kernel
    {"May 15 23:09:27 gpu01 kernel: [  514.682838] Memory cgroup out of memory: Killed process 15617 (python3) "
     "total-vm:11892kB, anon-rss:4292kB",
     kKernel, kHost, 9},
    {"[Thu Dec  7 00:05:15 2017] Memory cgroup out of memory: Kill process 24572 (java) score 0 or sacrifice child",
     kKernel, kHost, 9},
    {"[ 7093.543707] python invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=986", kKernel, kHost,
     9},
    {"oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0", kKernel, kHost, 9},
    {"[12.5] python[4711]: segfault at 0 ip 00007f sp 00007ffd error 4 in libtorch.so[7f00+1000]", kKernel, Lack::kNone,
     11},
    // Shells
    {"Killed", kShell, Lack::kNone, 9},
    {"/var/spool/slurmd/job00191/slurm_script: line 28:  8156 Killed                  python3 main.py --epochs 400",
     kShell, Lack::kNone, 9},
    {"run.sh: line 3: 812 Segmentation fault      (core dumped) python train.py", kShell, Lack::kNone, 11},
    {"zsh: killed     python train.py", kShell, Lack::kNone, 9},
    {"[1]    12345 killed     python train.py", kShell, Lack::kNone, 9},
    {"[0]<stderr>:Killed", kShell, Lack::kNone, 9, kOwn, 0},
    {"[1]<stderr>:Aborted (core dumped)", kShell, Lack::kNone, 6, kAfter, 1},
    {"Bus error (core dumped)", kShell, kShared, 7},
    {"python: can't open file '/home/me/trian.py': [Errno 2] No such file or directory", kShell},
    // Launchers
    {"ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -9) local_rank: 3 (pid: 812917) of binary: "
     "/opt/bin/python",
     kLauncher, Lack::kNone, 9},
    {"[2023-10-13 17:40:02,544] torch.distributed.elastic.multiprocessing.api: [ERROR] failed (exitcode: -11) "
     "local_rank: 0 (pid: 62498) of binary: /usr/bin/python",
     kLauncher, Lack::kNone, 11},
    {"E0305 10:03:22.000000 140 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: -7) "
     "local_rank: "
     "1 (pid: 1322) of binary: /usr/bin/python",
     kLauncher, kShared, 7},
    {"Loading checkpoint shards:  57% 4/7 [00:37<00:28,  9.42s/it]ERROR:torch.distributed.elastic.multiprocessing.api:"
     "failed (exitcode: -9) local_rank: 0 (pid: 8180) of binary: /usr/bin/python3",
     kLauncher, Lack::kNone, 9},
    {"E0305 10:03:22.0 140 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: 1) local_rank: 0 "
     "(pid: 1) of binary: python",
     kLauncher, Lack::kNone, 0, kAfter},
    {"Process 0 exit with status code 137.", kLauncher, Lack::kNone, 9, kOwn, 0},
    {"Process 3 exit with status code 134.", kLauncher, Lack::kNone, 6, kAfter, 3},
    {"[2023-04-14 13:11:27,885] [ERROR] [launch.py:434:sigkill_handler] ['/usr/bin/python3', '-u', 'main.py', "
     "'--local_rank=0'] exits with return code = -9",
     kLauncher, Lack::kNone, 9},
    {"mpirun noticed that process rank 7 with PID 0 on node gpu01 exited on signal 9 (Killed).", kLauncher, Lack::kNone,
     9, kOwn, 7},
    {"train-1 exited with code 137", kLauncher, Lack::kNone, 9},
    {"Process finished with exit code 139 (interrupted by signal 11: SIGSEGV)", kLauncher, Lack::kNone, 11},
    {"make: *** [Makefile:3: train] Error 137", kLauncher, Lack::kNone, 9},
    {"srun: error: gpu01: task 3: Exited with exit code 1", kLauncher, Lack::kNone, 0, kAfter, 3},
    {"srun: error: Orion-18-69: task 289: Bus error", kLauncher, kShared, 7},
    {"subprocess.CalledProcessError: Command '['/usr/bin/python3', 'train.py']' died with <Signals.SIGKILL: 9>.",
     kLauncher, Lack::kNone, 9},
    {"torch.multiprocessing.spawn.ProcessExitedException: process 2 terminated with signal SIGKILL", kLauncher,
     Lack::kNone, 9, kOwn, 2},
    // Python
    {"RuntimeError: CUDA error: out of memory", kPython, kDevice},
    {"RuntimeError: CUDNN_STATUS_ALLOC_FAILED", kPython, kDevice},
    {"RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`", kPython, kDevice},
    {"[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", kPython, kDevice, 0, kOwn, 3},
    {"torch.cuda.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB. If reserved memory is large try "
     "setting max_split_size_mb to avoid fragmentation.",
     kPython, kDevice},
    {"RuntimeError: MPS backend out of memory (MPS allocated: 5.05 GB)", kPython, kDevice},
    {"jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 8 bytes.",
     kPython, kDevice},
    {"OSError: [Errno 12] Cannot allocate memory", kPython, kHost},
    {"RuntimeError: unable to mmap 1024 bytes from file </torch_21552_0>: Cannot allocate memory (12)", kPython, kHost},
    {"RuntimeError: insufficient shared memory (shm)", kPython, kShared},
    {"RuntimeError: unable to write to file </torch_21552_0>: No space left on device (28)", kPython, kShared},
    {"MemoryError", kPython, kHost},
    {"numpy.core._exceptions._ArrayMemoryError: Unable to allocate 3.00 GiB for an array", kPython, kHost},
    {"RuntimeError: [enforce fail at alloc_cpu.cpp:75] . DefaultCPUAllocator: can't allocate memory: you tried to "
     "allocate 100 bytes.",
     kPython, kHost},
    {"ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.", kPython, kHost},
    {"RuntimeError: DataLoader worker (pid 46794) is killed by signal: Bus error. It is possible that dataloader's "
     "workers are out of shared memory. Please try to raise your shared memory limit.",
     kPython, kShared, 7},
    {"RuntimeError: DataLoader worker (pid 46794) is killed by signal: Killed. ", kPython, Lack::kNone, 9},
    {"KeyError: 4711", kPython},
    {"RuntimeError: [pair.cc:534] Connection closed by peer [127.0.0.1]:4711", kPython, Lack::kNone, 0, kPeer},
    {"torch.distributed.DistBackendError: NCCL communicator was aborted on rank 0.", kPython, Lack::kNone, 0, kPeer},
    {"torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ", kPython, Lack::kNone, 0, kAfter},
    // Runtimes
    {"ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).",
     kRuntime, kShared, 7},
    {"Fatal Python error: Segmentation fault", kRuntime, Lack::kNone, 11},
    {"terminate called after throwing an instance of 'c10::DistBackendError'", kRuntime, Lack::kNone, 0, kAfter},
    {"[rank1]:[E305 10:33:21.512 ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught collective operation timeout: "
     "WorkNCCL(SeqNum=4211, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=1800000) ran for 1800032 milliseconds "
     "before timing out.",
     kRuntime, Lack::kNone, 0, kPeer, 1},
    // Programs
    {"2024-03-05 10:00:00 ERROR trainer: CUDA out of memory. Tried to allocate 2.00 GiB", kProgram, kDevice},
    {"Training failed: CUDA out of memory", kProgram, kDevice},
    {"| WARNING: ran out of memory on GPU #2, skipping batch", kProgram, kDevice, 0, kOwn, std::nullopt, true},
    {"2022-08-21 00:29:47 | WARNING | metaseq.trainer | OOM: Ran out of memory with exception: CUDA out of memory. "
     "Tried "
     "to allocate 93.75 GiB (GPU 4; 79.17 GiB total capacity)",
     kProgram, kDevice, 0, kOwn, std::nullopt, true},
    {"CUDA out of memory on rank 3", kProgram, kDevice},
    {"2024-03-05 10:00:00 ERROR the worker went out of memory while it loaded", kProgram, kHost},
};

TEST(FailureLine, WhoSpeaksAndWhatItSays) {
  for (const Line& line : kFailures) {
    const auto told = failure_in(line.text);
    EXPECT_TRUE(told) << line.text;
    if (!told) {
      continue;
    }
    EXPECT_EQ(told->facts.speaker, line.speaker) << line.text;
    EXPECT_EQ(told->facts.lack, line.lack) << line.text;
    EXPECT_EQ(told->facts.signal, line.signal) << line.text;
    EXPECT_EQ(told->facts.blame, line.blame) << line.text;
    EXPECT_EQ(told->facts.rank, line.rank) << line.text;
    EXPECT_EQ(told->facts.hint, line.hint) << line.text;
  }
}

TEST(FailureLine, WordsThatAreNoFailure) {
  for (const char* line : {
           "Set max_split_size_mb to avoid CUDA out of memory errors.",
           "out of memory retries: 0",
           "CUDA out of memory errors: 0",
           "segmentation fault count 0",
           "segmentation faults: 0, bus errors: 0",
           "slurmstepd: error: Detected 0 oom_kill events in StepId=1.0.",
           "oom_kill 0",
           "2024-03-05 10:00:00 - ERROR - summary: out of memory events: 0, retries: 0",
           "|            CUDA OOMs: 0            |        cudaMalloc retries: 0         |",
           "If you are getting CUDA out of memory errors, you should reduce the size of your batch",
           "INFO - to prevent CUDA out of memory, the batch was split",
           "2024-03-05 10:00:00 ERROR handler installed to avoid CUDA out of memory",
           "WARNING: this may run out of memory on small GPUs",
           "Note: CUDA out of memory errors can be avoided with --fp16",
           "\"OOMKilled\": false,",
           "restarts: 0, OOMKilled: 0",
           "we killed the noise",
           "killed 0 stale processes",
           "Killed 2 zombie workers of an earlier run",
           "[2023-04-14 13:11:27,879] [INFO] [launch.py:428:sigkill_handler] Killing subprocess 13266",
           "[2023-04-14 13:11:27,879] [INFO] [launch.py:350:main] Process 13266 exits successfully.",
           "['python', 'train.py'] exits with return code = 0",
           "Process 0 exit with status code 0.",
           "srun: error: gpu01: task 3: Exited with exit code 0",
           "failed (exitcode: -15) local_rank: 1 (pid: 1322) of binary: /usr/bin/python",
           "0 failed, 12 passed",
           "12 retries, 0 errors, 0 aborted",
           "core dumped files are disabled",
           "epoch 1 val_error: 0.3 loss 0.2",
           "MeanError: 0.31",
           "error bars are drawn",
           "out of the memory bank",
           "W0305 10:03:22.0 140 torch/distributed/elastic/api.py:897] Sending process 1322 closing signal SIGTERM",
           "INFO retrying after ConnectionError: timed out",
           "Watchdog timeout is 1800 s",
           "bus error handler installed",
           "memory limit: 64 GiB",
           "Exit code: 0",
           "train-1 exited with code 0",
           "Process finished with exit code 0",
       }) {
    EXPECT_FALSE(failure_in(line)) << line;
  }
}

TEST(FailureLine, ATimeoutOfACollectiveTellsItsTime) {
  const auto told = failure_in(
      "[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=15173, "
      "OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600170 milliseconds before timing out.");
  ASSERT_TRUE(told);
  EXPECT_EQ(told->facts.timeout_s, 600);
}

TEST(LineFront, WhatStandsBeforeASentence) {
  struct Case {
    const char* line;
    const char* text;
    std::optional<int> rank;
  };
  for (const Case& one : {
           Case{"[rank12]: KeyError: 4711", "KeyError: 4711", 12},
           Case{"[1,3]<stderr>:Killed", "Killed", 3},
           Case{"[default0]:Traceback", "Traceback", 0},
           Case{"3: Killed", "Killed", 3},
           Case{"2024-03-05 10:04:20 ERROR - out", "out", std::nullopt},
           Case{"2024-03-05 10:04:20,123 - trainer - ERROR - out", "out", std::nullopt},
           Case{"(RayTrainWorker pid=1234, ip=10.0.0.1) out", "out", std::nullopt},
           Case{"gpu-node-7: out", "out", std::nullopt},
           Case{"OSError: [Errno 12] Cannot allocate memory", "OSError: [Errno 12] Cannot allocate memory",
                std::nullopt},
           Case{"0 Killed", "0 Killed", std::nullopt},
           Case{"", "", std::nullopt},
       }) {
    const detail::LogMessage said = detail::message_in(one.line);
    EXPECT_EQ(said.text, one.text) << one.line;
    EXPECT_EQ(said.rank, one.rank) << one.line;
  }
}

TEST(FailureForms, ShapesTakeStarsBlanksAndNumbers) {
  detail::FormNumbers numbers;
  EXPECT_TRUE(detail::has_shape("a  -9 b", "a %x *b", numbers));
  EXPECT_EQ(numbers.exit, -9);
  EXPECT_TRUE(detail::has_shape("xabxab c", "*ab c", numbers));
  EXPECT_FALSE(detail::has_shape("xabxab", "*ab c", numbers));
  EXPECT_FALSE(detail::has_shape("ab", "a", numbers));
  EXPECT_TRUE(detail::has_shape("", "*", numbers));
}

}  // namespace
}  // namespace unidle::logs
