"""Ask and tell, as in MLOS and other tuners: `suggest()` returns a setting, `register()` receives
its score.

Pagetide runs the trials, in place of a machine that is set up, loaded and measured: `Runner.run`
takes a setting of knobs (MLOS calls them tunables) and returns a score for each seed. The optimiser
here tries neighbours of the best setting so far; optimisers of MLOS (`mlos_core.optimizers`), Ax or
Nevergrad have the same two functions.

    python ask_tell.py [SCENARIO] [--trials N]
"""

import argparse
import random
import statistics
from typing import Protocol

import pagetide as pt

TUNABLES = {
    "vm.swappiness": list(range(0, 201, 20)),
    "vm.watermark_scale_factor": [10, 20, 50, 100, 200, 500, 1000],
    "vm.vfs_cache_pressure": [50, 100, 200],
}


class Optimizer(Protocol):
    def suggest(self) -> dict[str, int]: ...
    def register(self, setting: dict[str, int], score: float) -> None: ...


class Neighbours:
    """Starts with the defaults, then changes one tunable of the best setting by one step."""

    def __init__(self, start: dict[str, int], seed: int = 1) -> None:
        self.random = random.Random(seed)
        self.scores: dict[tuple[int, ...], float] = {}
        self.start = start

    @property
    def best(self) -> dict[str, int]:
        return dict(zip(TUNABLES, min(self.scores, key=self.scores.__getitem__))) if self.scores else self.start

    def suggest(self) -> dict[str, int]:
        if not self.scores:
            return self.start
        for _ in range(100):
            setting = dict(self.best)
            name = self.random.choice(list(TUNABLES))
            values = TUNABLES[name]
            at = values.index(setting[name]) + self.random.choice([-1, 1])
            setting[name] = values[min(max(at, 0), len(values) - 1)]
            if tuple(setting.values()) not in self.scores:
                return setting
        return {name: self.random.choice(values) for name, values in TUNABLES.items()}

    def register(self, setting: dict[str, int], score: float) -> None:
        self.scores[tuple(setting.values())] = score


class Runner:
    """Scores settings: returns the value of the metric for each seed."""

    def __init__(self, scenario: str, metric: str, seeds: int = 3) -> None:
        self.scenario = pt.load(scenario)
        self.metric, self.seeds = metric, seeds

    def run(self, setting: dict[str, int]) -> list[float]:
        result = self.scenario.run(set=setting, seeds=self.seeds, variants=self.scenario.variants[0])
        return [row["value"] for row in result.metrics.to_dicts() if row["metric"] == self.metric]


def main(scenario: str, metric: str, trials: int) -> tuple[dict[str, int], float]:
    runner = Runner(scenario, metric)
    optimizer: Optimizer = Neighbours(
        {"vm.swappiness": 60, "vm.watermark_scale_factor": 10, "vm.vfs_cache_pressure": 100}
    )
    best: tuple[dict[str, int], float] | None = None
    for trial in range(trials):
        setting = optimizer.suggest()
        score = statistics.fmean(runner.run(setting))
        optimizer.register(setting, score)
        if best is None or score < best[1]:
            best = (setting, score)
            print(f"trial {trial}: {metric} {score:.4g} with {setting}")
    assert best is not None, "there was no trial"
    return best


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("scenario", nargs="?", default="examples/find/reserve.toml")
    parser.add_argument("--metric", default="allocstall")
    parser.add_argument("--trials", type=int, default=30)
    arguments = parser.parse_args()
    main(arguments.scenario, arguments.metric, arguments.trials)
