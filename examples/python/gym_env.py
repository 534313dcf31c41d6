"""A Gymnasium environment: an agent sets two knobs of a machine under load, twenty times a second.

Actions are vm.swappiness and memory.high of the batch job's group. An observation has the counts of
/proc/vmstat since the last step, on a logarithmic scale, and the free memory. The cost of a step is
what the service of a node would notice: pages that had to be read or swapped in, and direct
reclaim. An episode ends with the work.

This is an example to start from, not a package. `python gym_env.py` compares random actions with
two fixed settings.
"""

import math

import gymnasium
import numpy as np

import pagetide as pt
from pagetide.core import Simulation

SCENARIO = """
name = "two-tenants"
[machine]
memory = "224MiB"
swap = "512MiB"
[[group]]
name = "batch"
[[task]]
name = "service"
workload = "working-set"
anon = "140MiB"
accesses = 600_000
[[task]]
name = "batch"
group = "batch"
workload = "touch"
size = "180MiB"
passes = 8
"""
COUNTERS = [
    "pgmajfault",
    "pswpin",
    "pswpout",
    "allocstall",
    "pgscan_kswapd",
    "pgscan_direct",
    "workingset_refault_file",
]
COSTS = {"pswpin": 1.0, "workingset_refault_file": 1.0, "allocstall": 5.0}


class MemoryEnv(gymnasium.Env):
    """Knobs as actions, counters as observations."""

    def __init__(self, scenario: str = SCENARIO, group: str = "batch", step: float = 0.05) -> None:
        self.scenario = pt.load(scenario)
        self.group, self.step_seconds = group, step
        # Swappiness from 0 to 200, and memory.high from 16 to 256 MiB.
        self.action_space = gymnasium.spaces.Box(0.0, 1.0, (2,), np.float32)
        self.observation_space = gymnasium.spaces.Box(0.0, 64.0, (len(COUNTERS) + 1,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict | None = None):
        super().reset(seed=seed)
        chosen = int(self.np_random.integers(1, 1 << 31)) if seed is None else seed
        self.simulation = Simulation(self.scenario, seed=chosen)
        self.before = self.simulation.vmstat
        return self._observe(self.before), {}

    def step(self, action):
        swappiness, high = (float(share) for share in action)
        self.simulation.write("vm.swappiness", round(200 * swappiness))
        self.simulation.write("memory.high", round(16 + 240 * high) << 20, group=self.group)
        is_over = self.simulation.run_until(self.simulation.now + self.step_seconds)
        now = self.simulation.vmstat
        cost = sum(weight * (now.get(name, 0) - self.before.get(name, 0)) for name, weight in COSTS.items())
        observation = self._observe(now)
        self.before = now
        return observation, -cost / 1000, is_over, self.simulation.now > 60, {"now": self.simulation.now}

    def _observe(self, now: dict[str, int]) -> np.ndarray:
        counted = [math.log2(1 + now.get(name, 0) - self.before.get(name, 0)) for name in COUNTERS]
        return np.float32([*counted, math.log2(1 + now["nr_free_pages"])])


def episode(env: MemoryEnv, choose, seed: int) -> tuple[float, float]:
    """The sum of rewards, and the seconds that the work took."""
    env.reset(seed=seed)
    env.action_space.seed(seed)
    total = 0.0
    while True:
        _, reward, terminated, truncated, info = env.step(choose())
        total += float(reward)
        if terminated or truncated:
            return total, info["now"]


if __name__ == "__main__":
    env = MemoryEnv()
    policies = {
        "random": env.action_space.sample,
        "swappiness 60, no limit": lambda: (0.3, 1.0),
        "swappiness 60, batch below 64 MiB": lambda: (0.3, 0.2),
    }
    for name, choose in policies.items():
        found = [episode(env, choose, seed) for seed in range(1, 4)]
        print(f"{name:34}", " ".join(f"reward {reward:8.1f} in {seconds:5.2f} s" for reward, seconds in found))
