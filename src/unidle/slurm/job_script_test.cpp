#include "unidle/slurm/job_script.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/base/process.h"

namespace unidle::slurm {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

JobRequest request() {
  JobRequest request;
  request.command = {"python", "train.py", "--name", "it's"};
  request.unidle = "/opt/unidle/bin/unidle";
  request.results = "/home/ada/my results";
  request.name = "train";
  return request;
}

bool is_shell(const std::string& script) {
  const TemporaryFolder folder;
  write_file_atomic(folder.path() / "job.sh", script);
  Command command;
  command.argv = {"bash", "-n", (folder.path() / "job.sh").string()};
  return run_to_end(command).status.ok();
}

TEST(JobScript, SaysWhatIsAskedFor) {
  JobRequest asked = request();
  asked.partition = "gpu";
  asked.gpus = 2;
  asked.gpu_type = "a100";
  asked.cpus = 8;
  asked.memory = "32G";
  asked.time = "4:00:00";
  asked.before = {"module load cuda"};
  const std::string script = job_script(asked);
  EXPECT_TRUE(script.starts_with("#!/bin/bash\n#SBATCH "));
  EXPECT_THAT(script, AllOf(HasSubstr("#SBATCH --partition=gpu\n"), HasSubstr("#SBATCH --gres=gpu:a100:2\n"),
                            HasSubstr("#SBATCH --cpus-per-task=8\n"), HasSubstr("#SBATCH --mem=32G\n"),
                            HasSubstr("#SBATCH --time=4:00:00\n"), HasSubstr("\nmodule load cuda\n"),
                            HasSubstr("#SBATCH --output='/home/ada/my results/gpu_run_%j_detailed.log'\n")));
  EXPECT_THAT(script,
              HasSubstr("srun /opt/unidle/bin/unidle run -o \"$record\" -- python train.py --name 'it'\\''s'\n"));
  EXPECT_THAT(script, Not(HasSubstr("--account")));
  EXPECT_TRUE(is_shell(script)) << script;
}

TEST(JobScript, SeveralNodesShareOneMeetingPoint) {
  JobRequest asked = request();
  asked.nodes = 2;
  asked.gpus = 4;
  asked.processes = true;
  const std::string script = job_script(asked);
  EXPECT_THAT(script, AllOf(HasSubstr("--nproc-per-node=4"), HasSubstr("--nnodes=\"$SLURM_JOB_NUM_NODES\""),
                            HasSubstr("-m torch.distributed.run"), HasSubstr("$SLURMD_NODENAME")));
  EXPECT_TRUE(is_shell(script)) << script;
}

TEST(JobScript, ArraysHaveFilesOfTheirOwn) {
  JobRequest asked = request();
  asked.array = "0-3%2";
  EXPECT_THAT(job_script(asked), HasSubstr("gpu_run_%A_%a_detailed.log"));
}

TEST(JobScript, AConfigurationGoesOnFromItsCheckpoint) {
  const TemporaryFolder folder;
  const auto config = folder.path() / "my train.yaml";
  write_file_atomic(config, "workload: superres\n");
  JobRequest asked = request();
  asked.requeue = true;
  train(asked, config);
  EXPECT_THAT(asked.command,
              ElementsAre("/opt/unidle/bin/unidle", "train", config.string(), HasSubstr("checkpoint.interval=")));
  const std::string script = job_script(asked);
  EXPECT_THAT(script, AllOf(HasSubstr("#SBATCH --signal=INT@120\n"), HasSubstr("#SBATCH --requeue\n"),
                            HasSubstr("\"checkpoint.folder=$checkpoints\" ${resume:+--resume \"$resume\"}"),
                            HasSubstr("[ $code = 130 ]; then scontrol requeue")));
  EXPECT_TRUE(is_shell(script)) << script;

  write_file_atomic(config, "checkpoint.interval: 500\n");
  JobRequest own = request();
  train(own, config);
  EXPECT_THAT(own.command, SizeIs(3));
}

TEST(JobScript, RefusesWhatSbatchWouldMisread) {
  const auto refused = [](auto change) {
    JobRequest asked = request();
    change(asked);
    try {
      job_script(asked);
    } catch (const Error& error) {
      return error.code() == ErrorCode::kUsage;
    }
    return false;
  };
  EXPECT_TRUE(refused([](JobRequest& r) { r.name = "a\n#SBATCH --nodes=100"; }));
  EXPECT_TRUE(refused([](JobRequest& r) { r.time = "long"; }));
  EXPECT_TRUE(refused([](JobRequest& r) { r.memory = "lots"; }));
  EXPECT_TRUE(refused([](JobRequest& r) { r.requeue = true; }));
  EXPECT_TRUE(refused([](JobRequest& r) { r.scratch = "$(reboot)"; }));
  EXPECT_TRUE(refused([](JobRequest& r) { r.scratch = "/tmp\"; reboot; \""; }));
  EXPECT_TRUE(refused([](JobRequest& r) { r.staged = {"/data"}; }));
  EXPECT_TRUE(refused([](JobRequest& r) {
    r.processes = true;
    r.gpus = 0;
  }));
  EXPECT_TRUE(refused([](JobRequest& r) {
    r.processes = true;
    r.gpus = 2;
    r.command = {"python", "-m", "torch.distributed.run", "train.py"};
  }));
  for (const char* signal : {"FOO@20", "@20", "INT@", "INT@1h", "0@3", "B:@4", "INT@100000"}) {
    EXPECT_TRUE(refused([&](JobRequest& r) { r.signal = signal; })) << signal;
  }
  for (const char* signal : {"INT@120", "B:SIGUSR1@60", "R:10@30", "TERM", "RTMAX@1"}) {
    EXPECT_EQ(refused([&](JobRequest& r) { r.signal = signal; }), std::string_view(signal) == "RTMAX@1") << signal;
  }
  EXPECT_FALSE(refused([](JobRequest& r) { r.time = "unlimited"; }));
}

TEST(JobScript, ScratchIsMadeFilledAndRemovedOnTheNode) {
  const TemporaryFolder folder;
  const auto made = [&](const std::string& name) { return (folder.path() / name).string(); };
  std::ofstream(made("my data")) << "rows";
  std::filesystem::create_directory(made("local disk"));
  JobRequest asked = request();
  asked.unidle = made("unidle");
  asked.results = folder.path();
  asked.scratch = "$LOCAL";
  asked.staged = {made("my data")};
  asked.command = {
      "sh", "-c", "cat \"$1\"; echo \"$1\" >\"$2\"; ls \"$TMPDIR\"; exit 7", "sh", "{scratch}/my data", made("where")};
  // Stand-ins for srun and unidle: they run the command that they are given.
  write_file_atomic(made("unidle"), "#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done; shift; exec \"$@\"\n");
  std::filesystem::permissions(made("unidle"), std::filesystem::perms::owner_all);
  const std::string script = job_script(asked);
  Command command;
  command.argv = {"bash", "-c", "srun() { \"$@\"; }\n" + script};
  command.environment = {{"SLURM_JOB_ID", "7"}, {"LOCAL", made("local disk")}};
  const Finished finished = run_to_end(command);
  EXPECT_EQ(finished.status.code, 7) << finished.err << script;
  EXPECT_EQ(finished.out, "rowsmy data\n");
  EXPECT_THAT(read_file(made("where")), HasSubstr("local disk/unidle_7."));
  EXPECT_TRUE(std::filesystem::is_empty(made("local disk")));

  asked.staged = {made("nothing")};
  command.argv[2] = "srun() { \"$@\"; }\n" + job_script(asked);
  EXPECT_NE(run_to_end(command).status.code, 7) << "the command began without its data";
  EXPECT_TRUE(std::filesystem::is_empty(made("local disk")));
}

TEST(JobScript, SymbolsInTheNameOfAFolderStayItsName) {
  JobRequest asked = request();
  asked.results = "/home/ada/100%j";
  EXPECT_THAT(job_script(asked), HasSubstr("#SBATCH --output=/home/ada/100%%j/gpu_run_%j_detailed.log\n"));
}

TEST(Comment, LeadsToTheResults) {
  EXPECT_EQ(results_in(comment_of("/home/ada/my results")), "/home/ada/my results");
  EXPECT_EQ(results_in("sweep 3"), "");
}

}  // namespace
}  // namespace unidle::slurm
