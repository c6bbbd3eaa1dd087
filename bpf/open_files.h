/* SPDX-FileCopyrightText: The rankscope authors */
/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */

/* From a descriptor to the file behind it, and from a system call that returns to what it was given. */
#pragma once

/* The descriptors of a task. */
static __always_inline struct fdtable *rs_descriptors_of(struct task_struct *task) {
  return BPF_CORE_READ(task, files, fdt);
}

/* 0 where the descriptor is not open. */
static __always_inline struct file *rs_file_at(struct fdtable *table, __u32 fd) {
  struct file **files, *file = 0;
  if (!table || fd >= BPF_CORE_READ(table, max_fds)) return 0;
  files = BPF_CORE_READ(table, fd);
  bpf_probe_read_kernel(&file, sizeof(file), files + fd);
  return file;
}

/* The same of the current process. */
static __always_inline struct file *rs_own_file(__u32 fd) {
  return rs_file_at(rs_descriptors_of((struct task_struct *)bpf_get_current_task()), fd);
}

/* The registers with which the current thread entered the kernel (5.15). */
static __always_inline struct pt_regs *rs_own_registers(void) {
  return (struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());
}

/* Arguments of a system call, as far as they are looked at; the registers outlive the call. */
struct rs_arguments {
  __u64 a[3];
};

static __always_inline struct rs_arguments rs_arguments_of(struct pt_regs *registers) {
  struct rs_arguments arguments;
#if defined(__TARGET_ARCH_arm64)
  arguments.a[0] = BPF_CORE_READ(registers, orig_x0);
  arguments.a[1] = BPF_CORE_READ(registers, regs[1]);
  arguments.a[2] = BPF_CORE_READ(registers, regs[2]);
#else
  arguments.a[0] = BPF_CORE_READ(registers, di);
  arguments.a[1] = BPF_CORE_READ(registers, si);
  arguments.a[2] = BPF_CORE_READ(registers, dx);
#endif
  return arguments;
}
