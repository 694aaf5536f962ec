#!/usr/bin/env python3
"""Writes Lockstep's Grafana dashboards: python3 dashboards.py [DIRECTORY], by default this one.

Needs `pip install -r requirements.txt`. Grafana uses the JSON files next to this one.
tests/cluster/grafana_test.py checks that this program writes the same.
"""
import json
import pathlib
import sys

from grafana_foundation_sdk.cog.encoder import JSONEncoder

from parts import RUN, WORKER, bad_above, board, chart, facts, good_above, number

EVERY = "$__rate_interval"


def rate(name, labels, by):
    return f"sum by ({by}) (rate({name}{{{labels}}}[{EVERY}]))"


def share(name, part, labels, by):
    return (f"{rate(name, labels + ', ' + part, by)} / on ({by}) "
            f"{rate(name, labels, by)}")


def phases(labels):
    return (f"{rate('lockstep_phase_seconds_total', labels, 'phase')} / on () group_left () "
            f"sum (rate(lockstep_phase_seconds_total{{{labels}}}[{EVERY}]))")


def per_step(phase, labels):
    work = rate("lockstep_phase_seconds_total", f'{labels}, phase=~"{phase}"', "instance")
    return f"{work} / on (instance) ({rate('lockstep_steps_total', labels, 'instance')} > 0)"


def of(name, labels=RUN):
    return f"{name}{{{labels}}}"


def overview():
    job_step = "sum (rate(lockstep_job_step_seconds_%s{" + RUN + "}[" + EVERY + "]))"
    return board("lockstep-run", "Lockstep / Run overview", "Whether a run learns, how fast, and "
                 "what became of its time.", "lockstep_step", [
        ("Now", [
            number("Step", "Steps applied in the surviving lineage.", "none",
                   of("lockstep_job_step"), decimals=0),
            number("Progress", "Share of the planned steps that is done.", "percentunit",
                   f"{of('lockstep_job_step')} / ({of('lockstep_job_steps_planned')} > 0)"),
            number("Time left", "Planned steps that are left, at the speed of the last minutes.",
                   "s", f"({of('lockstep_job_steps_planned')} - {of('lockstep_job_step')}) / "
                   f"(rate({of('lockstep_job_steps_total')}[{EVERY}]) > 0)"),
            number("Throughput", "Training samples a second, of all workers.", "short",
                   of("lockstep_job_samples_per_second")),
            number("Loss", "Mean training loss of the last step.", "none",
                   of("lockstep_job_loss"), decimals=4),
            number("Goodput", "Share of the run's wall time in steps that survive.", "percentunit",
                   of("lockstep_job_goodput_ratio"), good_above(0.5, 0.8)),
            number("Ranks missing", "Workers that the run should have and that do not train.",
                   "none", of("run:lockstep_ranks_missing"), bad_above(1, 2)),
            number("Steps since checkpoint", "What a loss of all workers would cost.", "none",
                   of("run:lockstep_steps_since_checkpoint"), decimals=0),
        ]),
        ("Learning", [
            chart("Loss", "Of the last step, and of the last evaluation (0 before the first).",
                  "none", (of("lockstep_job_loss"), "training"),
                  (of("lockstep_job_eval_loss"), "evaluation"), low=None),
            chart("Accuracy", "Share of right predictions, in the last step and in the last "
                  "evaluation.", "percentunit", (of("lockstep_job_train_accuracy_ratio"),
                                                 "training"),
                  (of("lockstep_job_eval_accuracy_ratio"), "evaluation"), high=1),
            chart("Learning rate", "Of the last step.", "sci",
                  (of("lockstep_job_learning_rate"), "learning rate")),
        ]),
        ("Speed", [
            chart("Throughput", "Training samples a second, of all workers.", "short",
                  (rate("lockstep_job_samples_total", RUN, "run"), "samples/s")),
            chart("Step time", "Mean, and the time that 95 % of the steps do not exceed, as "
                  "accurate as the histogram's buckets.", "s",
                  (f"{job_step % 'sum'} / ({job_step % 'count'} > 0)", "mean"),
                  ("histogram_quantile(0.95, "
                   + rate("lockstep_job_step_seconds_bucket", RUN, "le") + ")", "95 %")),
            chart("Steps", "Steps a second; 0 means that the run stands still.", "short",
                  (rate("lockstep_job_steps_total", RUN, "run"), "steps/s")),
        ]),
        ("Time", [
            chart("Phases", "Where the workers' wall time goes: the phases add up to 1.",
                  "percentunit", (phases(WORKER), "{{phase}}"), span=12, high=1, stacked=True),
            chart("Goodput",
                  "Share of wall time in steps: over the whole run without undone steps, and over "
                  "the last ten minutes.", "percentunit",
                  (of("lockstep_job_goodput_ratio"), "whole run"),
                  (of("run:lockstep_goodput:ratio10m"), "last 10 minutes"), span=12, high=1,
                  limits=good_above(0.5, 0.8)),
        ]),
        ("Membership", [
            chart("Members", "By state, and how many workers the run should have.", "none",
                  (of("lockstep_job_members"), "{{state}}"),
                  (of("lockstep_job_workers_wanted"), "wanted")),
            chart("Generation and term", "A new generation is a change of who is in; a new term is "
                  "a new coordinator, or a return to a checkpoint.", "none",
                  (of("lockstep_job_generation"), "generation"), (of("lockstep_job_term"), "term")),
            chart("Alerts", "Pending and firing.", "none",
                  (f'count by (alertname, alertstate) (ALERTS{{{RUN}}})',
                   "{{alertname}} {{alertstate}}")),
        ]),
    ])


def ranks():
    return board("lockstep-ranks", "Lockstep / Rank comparison", "Workers beside each other: who "
                 "is slow, and in what.", "lockstep_step", [
        ("Who is slow", [
            chart("Work on a step", "Time of a step that a worker does not spend waiting for the "
                  "others. All take the same wall time; the largest of these sets it.", "s",
                  (per_step("data_wait|copy|forward|backward|optimizer|other", WORKER),
                   "{{instance}}")),
            chart("Straggler ratio", "Work on a step against the median worker of the run.",
                  "none", (of("instance:lockstep_straggler:ratio2m", WORKER), "{{instance}}"),
                  limits=bad_above(1.2, 1.4)),
            chart("Waiting for the others", "Time of a step spent waiting for sums of gradients "
                  "that backward did not hide. Least where the work is most.", "s",
                  (per_step("communication", WORKER), "{{instance}}")),
        ]),
        ("In what", [
            chart("Forward and backward", "A step, on each worker.", "s",
                  (per_step("forward|backward", WORKER), "{{instance}}")),
            chart("Waiting for data", "A step, on each worker.", "s",
                  (per_step("data_wait", WORKER), "{{instance}}")),
            chart("Optimizer and the rest", "A step, on each worker.", "s",
                  (per_step("optimizer|copy|other", WORKER), "{{instance}}")),
            chart("Phases of the chosen workers", "Shares of their wall time; they add up to 1.",
                  "percentunit", (phases(WORKER), "{{phase}}"), span=12, high=1, stacked=True),
            chart("Utilization", "Share of wall time in forward, backward and optimizer, lately.",
                  "percentunit", (of("lockstep_utilization_ratio", WORKER), "{{instance}}"),
                  span=12, high=1, limits=good_above(0.5, 0.8)),
        ]),
        ("All ranks, as the coordinator sees them", [
            chart("Time of a slot",
                  "Time of a rank for one slot of a step by itself: the slowest, the median, the "
                  "fastest.", "s",
                  (of("lockstep_job_ranks_slot_seconds"), "{{stat}}")),
            chart("Slowest ranks", "Time of a slot of the eight slowest ranks.", "s",
                  (f"topk(8, {of('lockstep_rank_slot_seconds')})",
                   "{{rank}}: {{node}} {{local_rank}}")),
            chart("Silence",
                  "Time since the coordinator last heard from the eight most silent ranks.", "s",
                  (f"topk(8, {of('lockstep_rank_silence_seconds')})",
                   "{{rank}}: {{node}} {{local_rank}}")),
        ]),
        ("Processes", [
            chart("Processors used", "Of each worker, all threads.", "none",
                  (rate("lockstep_process_cpu_seconds_total", WORKER, "instance"),
                   "{{instance}}")),
            chart("Memory", "Of each worker, in RAM.", "bytes",
                  (of("lockstep_process_resident_memory_bytes", WORKER), "{{instance}}")),
            chart("Threads", "Of each worker.", "none",
                  (of("lockstep_process_threads", WORKER), "{{instance}}")),
            facts("Ranks", "Which member and rank each worker is at present.",
                  of("lockstep_member_info", WORKER)),
            chart("Steps applied", "To the weights that each worker holds.", "none",
                  (of("lockstep_step", WORKER), "{{instance}}"), span=12),
        ]),
    ])


def data():
    return board("lockstep-data", "Lockstep / Data pipeline", "Whether the samples come as fast as "
                 "they are used.", "lockstep_step", [
        ("Supply", [
            chart("Samples", "Training samples a second that each worker used.", "short",
                  (rate("lockstep_samples_total", WORKER, "instance"), "{{instance}}")),
            chart("Waiting for data", "Share of wall time. More than a few percent: storage or "
                  "decoding is the limit.", "percentunit",
                  (share("lockstep_phase_seconds_total", 'phase="data_wait"', WORKER, "instance"),
                   "{{instance}}"), limits=bad_above(0.05, 0.2)),
            chart("Copies to the device", "Share of wall time in copies that nothing hides.",
                  "percentunit",
                  (share("lockstep_phase_seconds_total", 'phase="copy"', WORKER, "instance"),
                   "{{instance}}"), limits=bad_above(0.05, 0.2)),
        ]),
        ("Progress", [
            chart("Samples used", "In recorded steps, of this coordinator.", "short",
                  (of("lockstep_job_samples_total"), "samples")),
            chart("Epoch", "Pass over the training data, from 0.", "none",
                  (of("lockstep_job_epoch"), "epoch")),
            chart("Samples a step", "The global batch; the last step of an epoch is shorter.",
                  "none", (f"{rate('lockstep_job_samples_total', RUN, 'run')} / on (run) "
                           f"({rate('lockstep_job_steps_total', RUN, 'run')} > 0)", "samples")),
        ]),
        ("Machines", [
            chart("Disks, read", "Of each node; of network file systems see the network.", "Bps",
                  (rate("lockstep_node_disk_read_bytes_total", RUN, "instance"), "{{instance}}")),
            chart("Network, received", "Of each node, all interfaces but loopback.", "Bps",
                  (rate("lockstep_node_network_received_bytes_total", RUN, "instance"),
                   "{{instance}}")),
            chart("Processors used", "Of each worker: the loader's threads share them with the "
                  "training thread.", "none",
                  (rate("lockstep_process_cpu_seconds_total", WORKER, "instance"),
                   "{{instance}}")),
        ]),
    ])


def gpus(node):
    gpu = "{{instance}} {{gpu}}"
    return [
        chart("GPUs, kernels", "Share of time in which a kernel ran, on each GPU that NVML shows.",
              "percentunit", (of("lockstep_gpu_utilization_ratio", node), gpu), high=1),
        chart("GPUs, memory", "Share in use.", "percentunit",
              (f"{of('lockstep_gpu_memory_used_bytes', node)} / "
               f"{of('lockstep_gpu_memory_bytes', node)}", gpu), high=1,
              limits=bad_above(0.95, 0.99)),
        chart("GPUs, power", "Power that the GPUs draw.", "watt",
              (of("lockstep_gpu_power_watts", node), gpu)),
        chart("GPUs, temperature", "Temperature of the chips.", "celsius",
              (of("lockstep_gpu_temperature_celsius", node), gpu)),
        chart("GPUs, throttled", "Reasons that lower the GPUs' clocks: 1 for each.",
              "none", (of("lockstep_gpu_throttled", node), gpu + " {{reason}}"), high=1),
        chart("GPUs, verdict",
              "What the agent finds of its GPUs, where cluster.gpu_health is not off: 1 for "
              "watch or leave.", "none",
              (of("lockstep_gpu_verdict", node + ', verdict!="ok"'),
               gpu + " {{verdict}}"), high=1, limits=bad_above(1, 2), span=12),
        chart("GPUs, errors",
              "In the last hour: uncorrected memory errors, and errors that the driver "
              "reported (XID); 1 for a lost GPU.", "none",
              (f"increase({of('lockstep_gpu_ecc_uncorrected_errors_total', node)}[1h])",
               gpu + " memory"),
              (f"increase({of('lockstep_gpu_xid_errors_total', node)}[1h])",
               gpu + " XID, {{cause}}"),
              (of("lockstep_gpu_lost", node), gpu + " lost"), limits=bad_above(1, 2)),
        chart("GPUs, clocks", "Clocks of the GPUs' processors.", "hertz",
              (of("lockstep_gpu_sm_clock_hertz", node), gpu), span=12),
        chart("GPUs, age",
              "Age of the newest NVML sample, which grows while the driver does not answer.", "s",
              (of("lockstep_gpu_sample_age_seconds", node), "{{instance}}"), span=12),
    ]


def cluster():
    node = RUN + ', instance=~"$instance"'
    idle = share("lockstep_node_cpu_seconds_total", 'mode=~"idle|iowait"', node, "instance")
    commit = "sum (rate(lockstep_journal_commit_seconds_%s{" + RUN + "}[" + EVERY + "]))"
    return board("lockstep-cluster", "Lockstep / Cluster and control plane", "The machines, and "
                 "what keeps the run together.", "up", [
        ("Targets", [
            chart("Up",
                  "1: the process answers at /metrics.", "none", (of("up", node), "{{instance}}"),
                  high=1),
            chart("Workers of each node", "Workers that run on the node.", "none",
                  (of("lockstep_agent_workers", node), "{{instance}}")),
            chart("Deaths",
                  "Workers of each node that died in the last hour, without those told to stop.",
                  "none",
                  (f"sum by (instance) (increase({of('lockstep_agent_worker_deaths_total', node)}"
                   "[1h]))", "{{instance}}"), limits=bad_above(1, 5)),
        ]),
        ("Machines", [
            chart("Processors", "Share in use.", "percentunit",
                  (f"1 - {idle}", "{{instance}}"), high=1),
            chart("Memory",
                  "Share in use, without memory that the kernel can reclaim.", "percentunit",
                  (of("instance:lockstep_node_memory:ratio", node), "{{instance}}"), high=1,
                  limits=bad_above(0.9, 0.95)),
            chart("Run directory", "Share of its file system that is left.", "percentunit",
                  (f"{of('lockstep_node_run_dir_available_bytes', node)} / "
                   f"{of('lockstep_node_run_dir_bytes', node)}", "{{instance}}"), high=1,
                  limits=good_above(0.05, 0.2)),
            chart("Disks", "Read and written.", "Bps",
                  (rate("lockstep_node_disk_read_bytes_total", node, "instance"),
                   "{{instance}} read"),
                  (rate("lockstep_node_disk_written_bytes_total", node, "instance"),
                   "{{instance}} written"), span=12),
            chart("Network", "All interfaces but loopback.", "Bps",
                  (rate("lockstep_node_network_received_bytes_total", node, "instance"),
                   "{{instance}} received"),
                  (rate("lockstep_node_network_sent_bytes_total", node, "instance"),
                   "{{instance}} sent"), span=12),
        ]),
        ("GPUs", gpus(node)),
        ("Coordinator", [
            chart("Journal commits", "Duration with fsync: mean, and what 95 % do not exceed.", "s",
                  (f"{commit % 'sum'} / ({commit % 'count'} > 0)", "mean"),
                  ("histogram_quantile(0.95, "
                   + rate("lockstep_journal_commit_seconds_bucket", RUN, "le") + ")", "95 %")),
            chart("Journal and records", "Entries committed, step records received and the batches "
                  "that they came in.", "short",
                  (rate("lockstep_journal_entries_total", RUN, "run"), "entries/s"),
                  (rate("lockstep_records_total", RUN, "run"), "records/s"),
                  (rate("lockstep_record_batches_total", RUN, "run"), "batches/s")),
            chart("Processor", "Processors that the coordinator uses.", "percentunit",
                  (rate("lockstep_process_cpu_seconds_total",
                        RUN + ', instance="coordinator"', "instance"), "{{instance}}")),
            chart("Evictions", "Members evicted in the last hour, by reason.", "none",
                  (f"sum by (reason) (increase({of('lockstep_job_evictions_total')}[1h]))",
                   "{{reason}}")),
            chart("Checks", "Comparisons of all members in the last hour. One that differed is a "
                  "machine that computes wrong.", "none",
                  (f"sum by (result) (increase({of('lockstep_job_checks_total')}[1h]))",
                   "{{result}}"), (of("lockstep_job_tainted"), "tainted")),
            chart("Checkpoints", "Completed and failed in the last hour.", "none",
                  (f"sum (increase({of('lockstep_job_checkpoints_total')}[1h]))", "completed"),
                  (f"sum (increase({of('lockstep_job_checkpoint_failures_total')}[1h]))",
                   "failed")),
            chart("Memory of the control plane", "Coordinator and agents, in RAM.", "bytes",
                  (f"lockstep_process_resident_memory_bytes{{{RUN}, instance!~\".+/.+\"}}",
                   "{{instance}}"), span=12),
            facts("Builds", "What each process was built from.", of("lockstep_build_info", node),
                  "local_rank", "node", span=12),
        ]),
    ])


BOARDS = {"run-overview": overview, "rank-comparison": ranks, "data-pipeline": data,
          "cluster-and-control-plane": cluster}


def write(directory):
    for name, make in BOARDS.items():
        text = json.dumps(make(), cls=JSONEncoder, indent=2, sort_keys=True)
        (pathlib.Path(directory) / f"{name}.json").write_text(text + "\n")


if __name__ == "__main__":
    write(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
