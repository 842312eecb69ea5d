#include "unidle/cli/subcommand.h"

int main(int argc, char** argv) { return unidle::cli::run_program(argc, argv); }
