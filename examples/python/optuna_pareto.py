"""An Optuna study over three knobs with two objectives: little direct reclaim, and a fast reader.

A reserve of free memory protects bursts from direct reclaim, but takes memory from the page cache.
So there is a Pareto front instead of a single best setting. Each batch of proposals is one call of
`pt.sweep`, on any executor.

    python optuna_pareto.py [SCENARIO] [--trials N]
"""

import argparse

import optuna

import pagetide as pt

SEEDS = 3
BATCH = 6


def propose(trial: optuna.Trial) -> dict[str, int]:
    return {
        "vm.watermark_scale_factor": trial.suggest_int("vm.watermark_scale_factor", 10, 1000, log=True),
        "vm.min_free_kbytes": trial.suggest_int("vm.min_free_kbytes", 2048, 65536, log=True),
        "vm.swappiness": trial.suggest_int("vm.swappiness", 0, 200),
    }


def main(scenario: str, trials: int, executor=None) -> optuna.Study:
    what = pt.load(scenario)
    study = optuna.create_study(directions=["minimize", "minimize"], sampler=optuna.samplers.NSGAIISampler(seed=1))
    while len(study.trials) < trials:
        asked = [study.ask() for _ in range(min(BATCH, trials - len(study.trials)))]
        points = [propose(trial) for trial in asked]
        made = pt.sweep(what, points, seeds=SEEDS, variants=what.variants[:1], executor=executor)
        found = {}
        for row in made.summary("allocstall", "reader.walltime").to_dicts():
            at = tuple(row[knob] for knob in points[0])
            found.setdefault(at, {})[row["metric"]] = row["mean"]
        for trial, point in zip(asked, points):
            of = found[tuple(point.values())]
            study.tell(trial, [of["allocstall"], of["reader.walltime"]])
    print("allocstall  reader.walltime  setting")
    for trial in sorted(study.best_trials, key=lambda trial: trial.values):
        stalls, seconds = trial.values
        print(f"{stalls:10.1f}  {seconds:13.3f} s  {trial.params}")
    return study


if __name__ == "__main__":
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    parser = argparse.ArgumentParser()
    parser.add_argument("scenario", nargs="?", default="examples/find/reserve.toml")
    parser.add_argument("--trials", type=int, default=60)
    arguments = parser.parse_args()
    main(arguments.scenario, arguments.trials)
