// From 2.34 on the C library runs the constructors of a program. An older one expects that the program brings the
// function that does so; a newer one runs it as well, in place of its own.
#if defined(__x86_64__)
#define BASE "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define BASE "GLIBC_2.17"
#endif

typedef int (*Main)(int, char**, char**);
typedef void (*Constructor)(int, char**, char**);

int start_of_library(Main program, int argc, char** argv, Constructor init, void (*fini)(void), void (*end)(void), void* stack);
__asm__(".symver start_of_library,__libc_start_main@" BASE);

extern Constructor __init_array_start[] __attribute__((visibility("hidden")));
extern Constructor __init_array_end[] __attribute__((visibility("hidden")));
extern void _init(void) __attribute__((visibility("hidden")));

static void run_constructors(int argc, char** argv, char** environment) {
  _init();
  for (Constructor* each = __init_array_start; each != __init_array_end; ++each) {
    (*each)(argc, argv, environment);
  }
}

// Called by the code that the compiler puts in front of each program.
__attribute__((visibility("hidden"))) int __libc_start_main(Main program, int argc, char** argv, Constructor init,
                                                            void (*fini)(void), void (*end)(void), void* stack) {
  (void)init;
  return start_of_library(program, argc, argv, run_constructors, fini, end, stack);
}
