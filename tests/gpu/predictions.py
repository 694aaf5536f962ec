"""The prediction of each check and figure on a GPU, before any GPU has run it. This table is the
only one: the suite prints it beside the results, and GPU.md repeats it (gpu_plan_test compares).
Figures are arithmetic: bytes over the bandwidth, operations over the rate of products."""
import dataclasses

GPU = "one H100 SXM (3.35 TB/s, 989 TFLOP/s dense)"
OF_ALL_GPUS = "H100 SXM with NVLink"
MARGIN = 0.15  # of the figures that are one number

# Milliseconds of a step of GPT-2 124M in bf16, 32 x 1,024 tokens. Traffic at 2.8 TB/s, products at
# 600 TFLOP/s. fast: a slot is a CUDA graph; exact: it is not.
STEP_TOKENS = 32 * 1024
PRODUCTS_TFLOPS = 600
ITEMS = (
    # what, fast, exact
    ("products: 16.7 TFLOP of the blocks, 7.6 of the head", 40.5, 40.5),
    ("attention: 2.2 TFLOP; fast: cuDNN, exact: flash 2, deterministic", 7.4, 11.8),
    ("residual and layer normalisation, 25 times", 3.7, 3.7),
    ("bias and GELU, 12 times", 4.4, 4.4),
    ("cross-entropy, 3.3 GB of logits in place", 3.0, 3.0),
    ("bias gradients of three products a block, 3.0 GB", 1.3, 1.3),
    ("one tensor of dq, dk and dv, 3.6 GB", 1.3, 1.3),
    ("casts of weights and gradients, embedding in fp32", 1.8, 1.8),
    ("gradient norm and AdamW, 4.0 GB", 1.5, 1.5),
    ("gaps: launches, control, verdict, next slot", 1.0, 1.5),
)


@dataclasses.dataclass
class Figure:
    least: float
    most: float  # the same: within MARGIN of it
    unit: str

    def words(self):
        if self.least == self.most:
            return f"{rounded(self.least)} {self.unit} ± {MARGIN:.0%}"
        return f"{rounded(self.least)} to {rounded(self.most)} {self.unit}"


def rounded(value):
    """Rounds to three digits, so that no reader takes a guess for a measurement."""
    digits = max(0, len(str(int(value))) - 3)
    return f"{round(value / 10**digits) * 10**digits:,}"


def step_ms(numerics):
    return sum(item[1 if numerics == "fast" else 2] for item in ITEMS)


def tokens_per_second(numerics):
    rate = STEP_TOKENS / step_ms(numerics) * 1000
    return Figure(rate, rate, "tokens/s")


PEAK = "bf16 matrix product, the peak as measured"
GPT2 = "gpt2 d12 bf16, 32 x 1024 tokens"
GPT2_ON_8 = "gpt2 d12 bf16, 8 GPUs, 256 x 1024 tokens"
RESNET50 = "resnet50 fp16, 256 x 3 x 224 x 224"
OURS, OURS_FAST, EAGER = "ours", "ours, fast numerics", "PyTorch eager"
# By the names of workload and side in measures.py.
FIGURES = {
    (PEAK, EAGER): Figure(PRODUCTS_TFLOPS, PRODUCTS_TFLOPS, "TFLOP/s"),
    (GPT2, OURS): tokens_per_second("exact"),
    (GPT2, OURS_FAST): tokens_per_second("fast"),
    (GPT2_ON_8, OURS): Figure(3.5e6, 3.8e6, "tokens/s"),
    (RESNET50, OURS): Figure(0.8 * 3200, 0.8 * 3900, "images/s"),
    (RESNET50, OURS_FAST): Figure(3200, 3900, "images/s"),
}


def of_figure(work, side):
    """The prediction in words, or "" without one."""
    figure = FIGURES.get((work, side))
    return figure.words() if figure else ""


def of_check(gpus_needed, gpus):
    """The predicted result of a check."""
    return "ok" if gpus >= gpus_needed else "not applicable"


def table():
    """Lines of Markdown, as they are in GPU.md."""
    lines = ["| prediction | side | figure |", "|---|---|---|"]
    lines += [f"| {work} | {side} | {figure.words()} |" for (work, side), figure in FIGURES.items()]
    lines += ["", "| part of a step of GPT-2 124M | fast, ms | exact, ms |", "|---|---|---|"]
    lines += [f"| {what} | {fast:g} | {exact:g} |" for what, fast, exact in ITEMS]
    return [*lines, f"| sum | {step_ms('fast'):.1f} | {step_ms('exact'):.1f} |"]
