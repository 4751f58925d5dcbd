"""Simulated jobs: what they run, how long, and how their load moves through the phases of their life."""

import math
from random import Random
from typing import NamedTuple

from gpulse.simulate.people import Person

GIB = 1024**3


class Kind(NamedTuple):
    """A kind of work. Ranges are lowest and highest; a job draws its own from them."""

    # GPUs wanted, each with its weight; above what one node has, whole nodes.
    gpus: dict[int, float]
    hours: tuple[float, float]
    # Share of a card's memory all processes on it hold together.
    memory: tuple[float, float]
    utilization: tuple[float, float]
    # How hard a busy moment is on the card, of what it can draw.
    intensity: tuple[float, float]
    commands: tuple[str, ...]
    # Processes on each GPU.
    processes: tuple[int, int] = (1, 1)
    cores: tuple[float, float] = (1.0, 4.0)
    works: bool = True


_ENV = "/home/{user}/miniforge3/envs/{env}/bin/python"
KINDS: dict[str, Kind] = {
    "pretraining": Kind(
        {8: 3, 16: 3, 32: 1},
        (2, 30),
        (0.82, 0.95),
        (0.95, 0.99),
        (0.86, 1.02),
        (
            _ENV + " -u pretrain.py --config configs/decoder-7b.yaml --tensor-parallel 2 --data /data/tokens/v3",
            _ENV + " -u train_vlm.py --model vit-g --global-batch 4096 --precision bf16 --resume latest",
        ),
        cores=(1.5, 4.0),
    ),
    "training": Kind(
        {1: 4, 2: 3, 4: 3, 8: 1},
        (0.4, 12),
        (0.45, 0.93),
        (0.72, 0.98),
        (0.6, 0.95),
        (
            _ENV + " train.py --dataset imagenet --arch convnext-l --batch-size 256 --epochs 90",
            _ENV + " -m diffusion.finetune --base sdxl --rank 64 --data /scratch/{user}/pairs",
            _ENV + " scripts/train_segmentation.py --fold 3 --amp",
            _ENV + " run_asr.py --train librispeech --lr 3e-4 --warmup 8000",
        ),
        processes=(1, 2),
        cores=(2.0, 9.0),
    ),
    "sweep": Kind(
        {1: 4, 2: 3, 4: 1},
        (0.1, 1.5),
        (0.25, 0.7),
        (0.5, 0.9),
        (0.4, 0.7),
        (
            _ENV + " sweep.py --trial {number} --space spaces/lr_depth.json",
            _ENV + " -m tune.worker --study ppo-{number} --trials 40",
        ),
        processes=(2, 4),
    ),
    "notebook": Kind(
        {1: 6, 2: 1},
        (1, 10),
        (0.1, 0.55),
        (0.2, 0.7),
        (0.3, 0.6),
        (_ENV + " -m ipykernel_launcher -f /home/{user}/.local/share/jupyter/runtime/kernel-{number}.json",),
        cores=(0.02, 0.1),
        works=False,
    ),
    "serving": Kind(
        {1: 3, 2: 2, 4: 1},
        (12, 90),
        (0.85, 0.92),
        (0.35, 0.9),
        (0.5, 0.75),
        (
            _ENV + " -m vllm.entrypoints.openai.api_server --model models/chat-32b --port 80{number:.2}",
            "/opt/tritonserver/bin/tritonserver --model-repository /models/{number:.2}",
        ),
        cores=(0.6, 1.6),
    ),
    "simulation": Kind(
        {1: 3, 2: 1, 4: 1},
        (1, 20),
        (0.04, 0.15),
        (0.88, 0.97),
        (0.55, 0.75),
        ("/opt/gromacs/bin/gmx mdrun -deffnm md_{number} -nb gpu -pme gpu -ntomp 8",),
        cores=(7.0, 8.0),
    ),
    "rendering": Kind(
        {1: 2, 2: 1},
        (0.2, 3),
        (0.3, 0.75),
        (0.9, 1.0),
        (0.75, 1.0),
        ("/opt/blender/blender -b scenes/shot_{number}.blend -E CYCLES -s 1 -e 240 -a -- --cycles-device OPTIX",),
        cores=(1.0, 2.0),
    ),
}


class Load(NamedTuple):
    """What a job does to one GPU at a moment; `memory` is the share of what it will hold that it holds by now."""

    utilization: float
    intensity: float
    memory: float
    cores: float


class Job:
    """One job of one person, on the slots it was given."""

    def __init__(self, number: int, name: str, person: Person, start: float, random: Random):
        kind = KINDS[name]
        draw = random.uniform
        self.number = number
        self.kind = name
        self.works = kind.works
        self.person = person
        self.start = start
        # Most jobs are short, a few are long: even on a logarithmic scale.
        self.end = start + 3600 * math.exp(draw(math.log(kind.hours[0]), math.log(kind.hours[1])))
        self.gpus = random.choices(list(kind.gpus), list(kind.gpus.values()))[0]
        self.processes = random.randint(*kind.processes)
        self.memory = draw(*kind.memory)
        self.cores = draw(*kind.cores)
        self.host_bytes = int(draw(2, 30) * GIB)
        self.command = random.choice(kind.commands).format(
            user=person.user, env=random.choice(("torch", "torch25", "py311", "work")), number=str(10_000 + number)
        )
        self._utilization = draw(*kind.utilization)
        self._intensity = draw(*kind.intensity)
        self._warm_up = draw(20, 80)
        self._epoch = draw(400, 1800)
        self._checkpoint = (draw(500, 1500), draw(6, 22))
        self._dip = (draw(15, 90), draw(1, 4)) if random.random() < 0.6 else (math.inf, 0.0)
        self._phase = draw(0, 3600)

    @property
    def program(self) -> str:
        return self.command.split()[0].rpartition("/")[2]

    def load(self, now: float, rank: int) -> Load:
        """What it does to one of its GPUs; the ranks of a job move together, as they wait for each other."""
        age = now - self.start
        if self.kind == "notebook":
            return self._notebook(age)
        if self.kind == "serving":
            return self._serving(now, age, rank)
        if age < self._warm_up:
            # Imports, data sets, weights: the CPU works, the GPU's memory fills.
            return Load(0.03, 0.1, 0.1 + 0.5 * age / self._warm_up, self.cores * 1.5)
        age -= self._warm_up
        if age % self._checkpoint[0] > self._checkpoint[0] - self._checkpoint[1]:
            return Load(0.0 if rank else 0.04, 0.1, 1.0, 1.0)
        if age % self._epoch > 0.92 * self._epoch:
            return Load(0.75 * self._utilization, 0.7 * self._intensity, 0.9, self.cores)
        if age % self._dip[0] < self._dip[1]:
            return Load(0.35 * self._utilization, 0.5 * self._intensity, 1.0, self.cores * 1.3)
        return Load(self._utilization, self._intensity, 1.0, self.cores)

    def _notebook(self, age: float) -> Load:
        """Somebody runs a few cells, then thinks about them for an hour, or goes home."""
        place = (age + self._phase) % 5400
        if place < 240 and place % 60 < 40:
            return Load(self._utilization, self._intensity, 1.0, 1.1)
        return Load(0.0, 0.0, 1.0, self.cores)

    def _serving(self, now: float, age: float, rank: int) -> Load:
        """Requests come in waves of minutes on the wave of the day."""
        if age < self._warm_up:
            return Load(0.01, 0.1, 0.05 + 0.9 * age / self._warm_up, 2.0)
        day = 0.7 + 0.3 * math.sin(2 * math.pi * (now / 86400 - 0.35))
        waves = 0.6 + 0.25 * math.sin((now + self._phase) / 97 + rank) + 0.15 * math.sin((now + self._phase) / 23)
        return Load(max(0.08, self._utilization * day * waves), self._intensity, 1.0, self.cores * (0.3 + waves))
