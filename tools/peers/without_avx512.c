/* Hides AVX-512 and AMX from libraries that ask the processor, for those that have no setting of their own (ONNX Runtime):
 *     cc -O2 -shared -fPIC without_avx512.c -o without_avx512.so && LD_PRELOAD=./without_avx512.so program
 * x86-64 Linux, on processors that can make the instruction cpuid a fault. It is executed here then, and answers less. */
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <cpuid.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

static long cpuid_faults(int on) { return syscall(SYS_arch_prctl, ARCH_SET_CPUID, !on); }

static void on_fault(int number, siginfo_t* info, void* context) {
  greg_t* r = ((ucontext_t*)context)->uc_mcontext.gregs;
  const unsigned char* at = (const unsigned char*)r[REG_RIP];
  (void)info;
  if (at[0] != 0x0f || at[1] != 0xa2) {
    signal(number, SIG_DFL);
    return;
  }
  unsigned leaf = (unsigned)r[REG_RAX], part = (unsigned)r[REG_RCX], a, b, c, d;
  cpuid_faults(0);
  __cpuid_count(leaf, part, a, b, c, d);
  cpuid_faults(1);
  if (leaf == 7 && part == 0) {
    b &= ~(1u << 16 | 1u << 17 | 1u << 21 | 1u << 26 | 1u << 27 | 1u << 28 | 1u << 30 | 1u << 31);
    c &= ~(1u << 1 | 1u << 6 | 1u << 11 | 1u << 12 | 1u << 14);
    d &= ~(1u << 2 | 1u << 3 | 1u << 8 | 1u << 22 | 1u << 23 | 1u << 24 | 1u << 25);
  }
  if (leaf == 7 && part == 1) a &= ~(1u << 5 | 1u << 21);
  r[REG_RAX] = a, r[REG_RBX] = b, r[REG_RCX] = c, r[REG_RDX] = d;
  r[REG_RIP] += 2;
}

__attribute__((constructor)) static void hide(void) {
  struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
  if (sigaction(SIGSEGV, &action, NULL) || cpuid_faults(1)) {
    perror("without_avx512: this processor cannot hide instructions");
    _exit(1);
  }
}
