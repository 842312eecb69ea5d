# LibTorch from the torch wheel of a virtual environment: imported target `unidle_torch`.
#
# Only libtorch_cpu and libc10 are linked. If the wheel has CUDA, libtorch_cuda is loaded at run time when there is a
# device, so that programs start fast and run on machines without a driver.
# Searched in UNIDLE_TORCH_DIR, then in the source tree's .venv, then in the modules that $UNIDLE_PYTHON imports.
set(UNIDLE_TORCH_DIR "" CACHE PATH "Folder of the torch package (the one with include/ and lib/)")

if(NOT UNIDLE_TORCH_DIR)
  file(GLOB candidates ${CMAKE_SOURCE_DIR}/.venv/lib/python3*/site-packages/torch)
  if(NOT DEFINED ENV{UNIDLE_PYTHON} AND candidates)
    list(GET candidates 0 found)
  elseif(DEFINED ENV{UNIDLE_PYTHON})
    execute_process(
      COMMAND $ENV{UNIDLE_PYTHON} -c "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])"
      OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endif()
  set(UNIDLE_TORCH_DIR "${found}" CACHE PATH "" FORCE)
endif()
if(NOT EXISTS ${UNIDLE_TORCH_DIR}/lib/libtorch_cpu.so)
  message(FATAL_ERROR "LibTorch was not found in '${UNIDLE_TORCH_DIR}'. Run ./dev setup, set UNIDLE_PYTHON to a "
                      "Python that has torch, or configure with -DUNIDLE_TORCH=OFF.")
endif()

get_filename_component(site_packages ${UNIDLE_TORCH_DIR} DIRECTORY)
file(GLOB cuda_includes ${site_packages}/nvidia/cu*/include ${site_packages}/nvidia/cuda_runtime/include)

# The CUDA runtime's headers, for the one library that needs libtorch_cuda's classes.
file(GLOB triton_includes ${site_packages}/triton/backends/nvidia/include)
find_path(UNIDLE_CUDA_INCLUDE cuda_runtime_api.h HINTS ${cuda_includes} PATHS /usr/local/cuda/include ${triton_includes})
find_path(UNIDLE_NCCL_INCLUDE nccl.h HINTS ${site_packages}/nvidia/nccl/include)

add_library(unidle_c10 SHARED IMPORTED GLOBAL)
set_target_properties(unidle_c10 PROPERTIES IMPORTED_LOCATION ${UNIDLE_TORCH_DIR}/lib/libc10.so)
add_library(unidle_torch_cpu SHARED IMPORTED GLOBAL)
set_target_properties(unidle_torch_cpu PROPERTIES IMPORTED_LOCATION ${UNIDLE_TORCH_DIR}/lib/libtorch_cpu.so)

add_library(unidle_torch INTERFACE)
target_include_directories(unidle_torch SYSTEM INTERFACE
  ${UNIDLE_TORCH_DIR}/include ${UNIDLE_TORCH_DIR}/include/torch/csrc/api/include ${cuda_includes})
target_link_libraries(unidle_torch INTERFACE unidle_torch_cpu unidle_c10)
# libtorch_cpu finds its own dependencies (CUDA runtime, CUPTI) by its RPATH; the linker need not.
target_link_options(unidle_torch INTERFACE -Wl,-rpath,${UNIDLE_TORCH_DIR}/lib -Wl,--allow-shlib-undefined)
message(STATUS "LibTorch: ${UNIDLE_TORCH_DIR}")
