// Ends of logs from public reports of torch, deepspeed, horovod, Slurm and Kubernetes, shortened, with the right
// answer.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "unidle/logs/text_log.h"

namespace unidle::logs {
namespace {

struct FailedLog {
  const char* end;  // after steps of training
  Lack lack;
};

const FailedLog kFailedLogs[] = {
    {"[2023-04-14 13:11:27,879] [INFO] [launch.py:428:sigkill_handler] Killing subprocess 13266\n[2023-04-14 "
     "13:11:27,885] [ERROR] [launch.py:434:sigkill_handler] ['/usr/bin/python3', '-u', 'main.py', '--local_rank=0'] "
     "exits with return code = -9\n",
     Lack::kNone},
    {"Traceback (most recent call last):\n  File \"/home/me/train.py\", line 50, in <module>\n    "
     "main()\nsubprocess.CalledProcessError: Command '['/usr/bin/python3', 'train_network.py', '--x=1']' died with "
     "<Signals.SIGKILL: 9>.\n",
     Lack::kNone},
    {"╭─────────────────────────────── Traceback (most recent call last) ────────────────────────────────╮\n│ "
     "/usr/local/bin/train.py:8 in <module>                                                          │\n│   8 │   "
     "sys.exit(main())     "
     "│\n╰──────────────────────────────────────────────────────────────────────────────────────────────────╯\nOutOfMem"
     "oryError: CUDA out of memory. Tried to allocate 2.00 GiB\n",
     Lack::kDeviceMemory},
    {"slurmstepd: error: Detected 1 oom_kill event in StepId=440575.0. Some of the step tasks have been OOM "
     "Killed.\nsrun: error: nid001277: tasks 1-3: Out Of Memory\nsrun: Terminating StepId=440575.0\nslurmstepd: error: "
     "*** STEP 440575.0 ON nid001277 CANCELLED AT 2024-03-05T10:04:01 ***\n",
     Lack::kHostMemory},
    {"srun: error: Orion-18-69: task 289: Bus error\nsrun: Terminating job step 3495450.0\nslurmstepd: error: *** STEP "
     "3495450.0 ON orion-01-04 CANCELLED AT 2024-03-05T10:04:22 ***\n",
     Lack::kSharedMemory},
    {"Traceback (most recent call last):\n  File \"/home/me/train.py\", line 50, in <module>\n    "
     "main()\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB.\n[rank: 1] Child process with "
     "PID 98 terminated with code 1. Forcefully terminating all other processes to avoid zombies 🧟\n",
     Lack::kDeviceMemory},
    {"(RayTrainWorker pid=1234, ip=10.0.0.2) torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 "
     "GiB\n",
     Lack::kDeviceMemory},
    {"    Last State:     Terminated\n      Reason:       OOMKilled\n      Exit Code:    137\n", Lack::kHostMemory},
    {"2024-03-05 10:03:22.123: W tensorflow/core/common_runtime/bfc_allocator.cc:497] Allocator (GPU_0_bfc) ran out of "
     "memory trying to allocate 2.00GiB\nTraceback (most recent call last):\n  File \"/home/me/train.py\", line 50, in "
     "<module>\n    main()\ntensorflow.python.framework.errors_impl.ResourceExhaustedError: Graph execution error: OOM "
     "when allocating tensor with shape[256,64] and type float on /job:localhost/device:GPU:0\n",
     Lack::kDeviceMemory},
    {"  5%|▌         | 50/1000 [00:10<03:10,  5.00it/s, loss=0.5]Traceback (most recent call last):\n  File "
     "\"/home/me/train.py\", line 50, in <module>\n    main()\nValueError: bad batch\n",
     Lack::kNone},
    {"Traceback (most recent call last):\n  File \"/home/me/train.py\", line 50, in <module>\n    "
     "main()\ntensorflow.python.framework.errors_impl.ResourceExhaustedError: Graph execution error:\n\nOOM when "
     "allocating tensor with shape[64,1024] and type float on /job:localhost/device:GPU:0 by allocator GPU_0_bfc\n",
     Lack::kDeviceMemory},
    {"srun: error: Unable to create step for job 4711: Memory required by task is not available\n", Lack::kNone},
    {"(raylet) [2024-03-05 10:03:20,000 E 100 100 (raylet)] node_manager.cc:3064: 1 Workers (tasks / actors) killed "
     "due to memory pressure (OOM), 0 Workers crashed due to other reasons at node (ID: abc, IP: 10.0.0.1)\n",
     Lack::kHostMemory},
    {"prterun noticed that process rank 1 with PID 812 on node n1 exited on signal 11 (Segmentation fault).\n",
     Lack::kNone},
    {"Traceback (most recent call last):\n  File \"/home/me/train.py\", line 50, in <module>\n    "
     "main()\ntorch.distributed.DistBackendError: NCCL error in: "
     "../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1331, unhandled cuda error, NCCL version "
     "2.18.6\nncclUnhandledCudaError: Call to CUDA function failed.\nLast error:\nCuda failure 'out of memory'\n",
     Lack::kDeviceMemory},
    {"Segmentation fault (core dumped)\n", Lack::kNone},
    {"Fatal Python error: Segmentation fault\n\nThread 0x00007f (most recent call first):\n  File \"/home/me/a.py\", "
     "line 3 in f\n",
     Lack::kNone},
    {"ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory "
     "(shm).\nTraceback (most recent call last):\n  File \"/home/me/train.py\", line 50, in <module>\n    "
     "main()\nRuntimeError: DataLoader worker (pid(s) 3216) exited unexpectedly\n",
     Lack::kSharedMemory},
    {"[rank1]: Traceback (most recent call last):\n[rank1]:   File \"/home/me/train.py\", line 50, in "
     "<module>\n[rank1]:     main()\n[rank1]: KeyError: 'x'\nslurmstepd: error: *** JOB 5211 ON node1 CANCELLED AT "
     "2024-03-05T11:03:20 ***\n",
     Lack::kNone},
    {"Mar  5 10:03:27 gpu01 kernel: [  514.682838] Out of memory: Killed process 15617 (python3) total-vm:11892kB, "
     "anon-rss:4292kB\n",
     Lack::kHostMemory},
    {"/var/spool/slurmd/job00191/slurm_script: line 28:  8156 Killed                  python3 main.py\nslurmstepd: "
     "error: Detected 1 oom-kill event(s) in StepId=191.batch cgroup. Some of your processes may have been killed by "
     "the cgroup out-of-memory handler.\n",
     Lack::kHostMemory},
    {"THCudaCheck FAIL file=/pytorch/aten/src/THC/generic/THCStorage.cu line=58 error=2 : out of memory\nTraceback "
     "(most recent call last):\n  File \"/home/me/train.py\", line 50, in <module>\n    main()\nRuntimeError: cuda "
     "runtime error (2) : out of memory at /pytorch/aten/src/THC/generic/THCStorage.cu:58\n",
     Lack::kDeviceMemory},
    {"Traceback (most recent call last):\n  File \"/home/me/train.py\", line 50, in <module>\n    "
     "main()\ntorch.multiprocessing.spawn.ProcessRaisedException: \n\n-- Process 1 terminated with the following "
     "error:\nTraceback (most recent call last):\n  File \"/home/me/data.py\", line 50, in <module>\n    "
     "main()\nKeyError: 4711\n",
     Lack::kNone},
    {"{\"level\": \"error\", \"ts\": 1709633002.5, \"msg\": \"CUDA out of memory. Tried to allocate 2.00 GiB\"}\n",
     Lack::kDeviceMemory},
    {"2024-03-05 10:03:22.123 | ERROR    | __main__:main:42 - CUDA out of memory. Tried to allocate 2.00 GiB\n",
     Lack::kDeviceMemory},
    {"2024/03/05 10:03:22 - mmengine - ERROR - out of memory\nTraceback (most recent call last):\n  File "
     "\"/home/me/train.py\", line 50, in <module>\n    main()\nRuntimeError: CUDA error: out of memory\nCUDA kernel "
     "errors might be asynchronously reported\n",
     Lack::kDeviceMemory},
    {"ResourceExhaustedError: \n\nOut of memory error on GPU 0. Cannot allocate 2.000000GB memory on GPU 0\n",
     Lack::kDeviceMemory},
};

/// "@" stands for steps of training.
const char* const kHealthyLogs[] = {
    "@2020-12-08 22:42:14 | WARNING | fairseq.trainer | |            CUDA OOMs: 0            |        cudaMalloc "
    "retries: 0         |\ntraining finished\n",
    "@[2023-04-14 13:11:27,879] [INFO] [launch.py:350:main] Process 13266 exits successfully.\ntraining finished\n",
    "@WARNING:urllib3.connectionpool:Retrying (Retry(total=4)) after connection broken by 'ConnectionResetError(104, "
    "'Connection reset by peer')'\n@training finished\n",
    "@training finished\nException ignored in: <function _MultiProcessingDataLoaderIter.__del__ at 0x7f>\nTraceback "
    "(most recent call last):\n  File \"/home/me/train.py\", line 50, in <module>\n    main()\nAssertionError: can "
    "only test a child process\n",
    "Warning: apex was not found, ImportError: No module named 'apex'\n@training finished\n",
    "@UserWarning: mixing these libraries may cause a segmentation fault\ntraining finished\n",
    "Namespace(oom_batch=False, kill_on_exit=True, error='raise', abort_on_nan=True)\n@training finished\n",
    "@training finished\nKilling subprocess 123\n",
    "@Aborted by early stopping: patience reached\ntraining finished\n",
    "INFO:root:Error handling: out of memory guard enabled\n@training finished\n",
    "@training finished\n[rank0]:[W305 10:33:21.5 ProcessGroupNCCL.cpp:1250] Warning: WARNING: process group has NOT "
    "been destroyed before we destruct ProcessGroupNCCL.\n",
    "@slurmstepd: error: _is_a_lwp: open() /proc/2345/status failed: No such file or directory\ntraining finished\n",
    "# If training stops with 'RuntimeError: CUDA out of memory. Tried to allocate', lower --batch\n@training "
    "finished\n",
    "@exit code: 0\nfailed: 0, killed: 0, out of memory: 0\ntraining finished\n",
    "@help: --oom-retries N  how often to try again when out of memory (default: 0)\ntraining finished\n",
    "@errors=0 bus error=0 core dumped=0 aborted=0\ntraining finished\n",
    "@training finished\n            \"OOMKilled\": false,\n            \"ExitCode\": 0,\n",
    "@Traceback (most recent call last):\n  File \"/home/me/train.py\", line 50, in <module>\n    "
    "main()\nConnectionError: lost\n[INFO] torch.distributed.elastic.agent.server.api: [default] Worker group FAILED. "
    "3/3 attempts left; will restart worker group\n@training finished\n",
    "@slurmstepd: error: *** JOB 5211 ON node1 CANCELLED AT 2024-03-05T10:03:20 DUE TO JOB REQUEUE ***\n@training "
    "finished\n",
    "@INFO: CUDA out of memory at batch size 64, retrying with 32\n@training finished\n",
    "@[I305 10:33:21.5 ProcessGroupNCCL.cpp:884] [PG 0 Rank 0] ProcessGroupNCCL initialization options: TIMEOUT(ms): "
    "600000, watchdog: enabled\ntraining finished\n",
    "NCCL_ASYNC_ERROR_HANDLING=1 TORCH_NCCL_ABORT=0 OOM_KILL=0\n@training finished\n",
    "memory limit: 64G, time limit: 4:00:00\n@training finished\n",
};

std::string with_steps(std::string_view shape) {
  std::string text;
  int second = 0;
  for (const char c : shape) {
    if (c != '@') {
      text += c;
      continue;
    }
    for (int i = 0; i < 200; ++i, ++second) {
      text += fmt::format("2024-03-05 10:{:02}:{:02} step {}/400 loss 0.5\n", second / 60 % 60, second % 60, second);
    }
  }
  return text;
}

TextLog posted(const std::string& bytes) {
  Source source("posted.log", bytes);
  return read_text_log(source);
}

TEST(FailuresInReports, AreFound) {
  for (const FailedLog& one : kFailedLogs) {
    const TextLog log = posted(with_steps("@") + one.end);
    const DecisiveFailure failure = decisive_failure(log);
    EXPECT_TRUE(failure.failure != nullptr && !failure.went_on) << one.end;
    const DecisiveFailure memory = lack_of_memory(log);
    EXPECT_EQ(memory.failure == nullptr ? Lack::kNone : memory.failure->facts.lack, one.lack) << one.end;
  }
}

TEST(FailuresInReports, AreNotSeenWhereThereIsNone) {
  for (const char* shape : kHealthyLogs) {
    const TextLog log = posted(with_steps(shape));
    const DecisiveFailure failure = decisive_failure(log);
    EXPECT_TRUE(failure.failure == nullptr || failure.went_on) << shape;
    EXPECT_FALSE(log.end) << shape;
  }
}

}  // namespace
}  // namespace unidle::logs
