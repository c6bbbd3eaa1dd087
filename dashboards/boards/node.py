# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
from .panels import GPU, HOST, RANK, Board, lines, row, table, verdicts

NO_JOB = "No job runs on the chosen nodes, and none has ended in the last hour"
NO_GPU = "No GPU: the source nvml is not up on the chosen nodes"
NO_COUNTER = "The GPUs have no such counter: it comes with Hopper, or from a dcgm-exporter on the node"
NO_RANK = "No rank runs on the chosen nodes"


def by_gpu(metric):
    return f"max by (instance, gpu) ({metric})"


def rate_by_gpu(metric):
    return f"sum by (instance, gpu) (rate({metric}{{@node}}[$__rate_interval]))"


BOARD = Board(
    "node", "Node", "What happens on this node?",
    row("Jobs",
        verdicts("Verdicts of jobs here", "The verdict of each job that has or had a process on the chosen nodes.", NO_JOB, "@node", size=(14, 7)),
        table("GPUs and their jobs", "Which GPU belongs to which job, and how this is known.", "none",
              "No GPU is known to belong to a job: Slurm, the container runtime or a CUDA call must show whose it is",
              "max by (instance, gpu, job_id, source) (rankscope_job_gpu{@node})", ("instance", "gpu", "job_id", "source"), size=(10, 7), value=None)),
    row("GPUs",
        lines("Multiprocessors active", "Share of the time in which the GPU's multiprocessors had work.", "percentunit", NO_COUNTER,
              (GPU, by_gpu("rankscope_gpu_sm_active_ratio{@node}")), max=1),
        lines("Any work", "Share of the time in which any work ran on the GPU, however little of it: nvidia-smi's utilization.", "percentunit", NO_GPU,
              (GPU, by_gpu("rankscope_gpu_engine_active_ratio{@node}")), max=1),
        lines("Tensor cores active", "Share of the GPU's cycles in which its tensor cores were active.", "percentunit", NO_COUNTER,
              (GPU, by_gpu('rankscope_gpu_pipe_active_ratio{@node,pipe="tensor"}')), max=1),
        lines("Memory bandwidth", "Share of the peak bandwidth of the GPU's memory that is used.", "percentunit", NO_COUNTER,
              (GPU, by_gpu("rankscope_gpu_dram_active_ratio{@node}")), max=1),
        lines("Memory used", "Allocated memory of the GPU.", "bytes", NO_GPU, (GPU, by_gpu("rankscope_gpu_memory_used_bytes{@node}"))),
        lines("Power", "Current power draw of the GPU.", "watt", NO_GPU, (GPU, by_gpu("rankscope_gpu_power_watts{@node}"))),
        lines("NVLink", "Bytes per second that the GPU sends and receives over NVLink.", "Bps", "The GPUs have no NVLink, or do not count its bytes",
              (GPU + " sent", rate_by_gpu("rankscope_gpu_nvlink_transmit_bytes_total")),
              (GPU + " received", rate_by_gpu("rankscope_gpu_nvlink_receive_bytes_total"))),
        lines("PCIe", "Bytes per second that the GPU sends and receives over PCIe.", "Bps", NO_COUNTER,
              (GPU + " sent", rate_by_gpu("rankscope_gpu_pcie_transmit_bytes_total")),
              (GPU + " received", rate_by_gpu("rankscope_gpu_pcie_receive_bytes_total")))),
    row("Processes",
        lines("CPU of ranks", "Cores that each rank keeps busy.", "none", NO_RANK,
              (RANK, "sum by (instance, job_id, rank) (rate(rankscope_rank_cpu_seconds_total{@node}[$__rate_interval]))")),
        lines("Memory of ranks", "Resident memory of each rank's process.", "bytes", NO_RANK,
              (RANK, "max by (instance, job_id, rank) (rankscope_rank_resident_bytes{@node})")),
        lines("Swapped out", "Memory of each rank's process that is swapped out: a training job should have none.", "bytes", NO_RANK,
              (RANK, "max by (instance, job_id, rank) (rankscope_rank_swapped_bytes{@node})")),
        lines("Page faults that read from a disk", "Major page faults per second of each rank.", "cps", NO_RANK,
              (RANK, "sum by (instance, job_id, rank) (rate(rankscope_rank_major_page_faults_total{@node}[$__rate_interval]))"))),
    row("Kernel and network",
        lines("Hardware errors in the kernel log", "Lines of the kernel log that report hardware errors or blocked processes, since the exporter started, by kind.",
              "none", "The kernel log cannot be read: the source kmsg needs CAP_SYSLOG",
              (HOST + " {{kind}}", "max by (instance, kind) (rankscope_kernel_events_total{@node})")),
        lines("RDMA ports down", "Ports of the node whose link is not active.", "none", "The node has no InfiniBand, RoCE or EFA port",
              (HOST, "max by (instance) (rankscope_infiniband_ports_down{@node})")),
        lines("RDMA errors", "Errors and link events that the ports counted since a job of the node began, by kind.", "none",
              "The node has no InfiniBand, RoCE or EFA port, or no job", (HOST + " {{kind}}", "max by (instance, kind) (rankscope_infiniband_errors_total{@node})")),
        table("Sources of evidence", "Whether each source works on the node. 0 is also what a source shows that the node has no use for; the page /node "
              "of the node says which, and why.", "none", "No exporter has been scraped: see the targets of Prometheus",
              "max by (instance, source) (rankscope_source_up{@node})", ("instance", "source"), size=(12, 8), value="works")),
    choose_node=True)
