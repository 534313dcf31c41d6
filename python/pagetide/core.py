"""The memory manager itself, and a run that is stepped from outside.

`Machine` is the manager without a world: groups, address spaces, touches in batches, control files, counters.
`Simulation` is one run of a scenario: run until a time, read counters, write a control file, go on.
"""

from ._pagetide import Machine, Mapping, Simulation, Task

__all__ = ["Machine", "Mapping", "Simulation", "Task"]
