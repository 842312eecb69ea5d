#include <array>

#include "unidle/base/substrings.h"
#include "unidle/trace/summary.h"

namespace unidle::trace {

namespace {

/// Parts of names that only kernels on matrix units have. In the names of cuBLAS and CUTLASS a number such as 16816 is
/// the shape of one matrix instruction (16x8x16).
constexpr auto kMatrix = std::to_array<std::string_view>(
    {// instruction shapes: Volta, Turing, Ampere, and the integer ones
     "h884", "s884", "d884", "i8816", "h1688", "s1688", "c1688", "16816", "16832", "16864", "tensor16x8",
     // CUTLASS, cuBLAS, cuDNN
     "tensorop", "TensorOp", "hmma", "imma", "wgmma", "_gmma", "nvjet", "xmma_gemm", "xmma_sparse", "xmma_fprop",
     "xmma_dgrad", "xmma_wgrad", "xmma_implicit_gemm", "xmma_warp_specialized",
     // attention
     "flash_fwd", "flash_bwd", "FlashAttnFwd", "FlashAttnBwd", "fmha_cutlassF_f16", "fmha_cutlassF_bf16",
     "fmha_cutlassB_f16", "fmha_cutlassB_bf16",
     // AMD: Tensile's matrix instructions
     "_MI16x16", "_MI32x32", "_MI4x4"});
/// Kernels of the same libraries that use the ordinary units.
constexpr auto kOrdinary = std::to_array<std::string_view>({"_ffma", "_simt", "Simt"});

/// Kernels that exchange data with other devices: NCCL and RCCL, MSCCL, NVSHMEM, torch's symmetric memory, DeepEP, and
/// the all-reduces of inference engines.
constexpr auto kCommunication = std::to_array<std::string_view>(
    {"nccl", "rccl", "msccl", "nvshmem", "multimem_all_reduce", "multimem_one_shot", "one_shot_all_reduce",
     "two_shot_all_reduce", "cross_device_reduce", "deep_ep::", "allreduce_fusion_kernel", "AllReduceKernel"});

}  // namespace

bool uses_matrix_units(std::string_view kernel) {
  return contains_any(kernel, kMatrix) && !contains_any(kernel, kOrdinary);
}

bool is_communication(std::string_view kernel) { return contains_any(kernel, kCommunication); }

std::string_view clock_mark() { return "unidle.clock."; }

}  // namespace unidle::trace
