# Compiles for 64-bit Arm on another machine, with Debian's g++-aarch64-linux-gnu:
#
#   cmake --preset core --toolchain cmake/aarch64.cmake -B build-aarch64 [-DCMAKE_SYSROOT=FOLDER]
#
# CMAKE_SYSROOT is an unpacked arm64 system with the libraries that `./dev setup` installs; without it they are those
# of the packages NAME:arm64. Tests run if qemu-aarch64 is there. Manual pages are not made.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
if(CMAKE_SYSROOT)  # nothing of this machine instead of what is missing there
  foreach(kind LIBRARY INCLUDE PACKAGE)
    set(CMAKE_FIND_ROOT_PATH_MODE_${kind} ONLY)
  endforeach()
endif()

set(ENV{PKG_CONFIG_LIBDIR} ${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${CMAKE_SYSROOT}/usr/share/pkgconfig)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${CMAKE_SYSROOT})

find_program(UNIDLE_QEMU NAMES qemu-aarch64 qemu-aarch64-static)
if(UNIDLE_QEMU)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${UNIDLE_QEMU})
  if(CMAKE_SYSROOT)
    list(APPEND CMAKE_CROSSCOMPILING_EMULATOR -L ${CMAKE_SYSROOT})
  endif()
endif()
