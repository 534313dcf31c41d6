"""The memory manager alone, and a run that Python code steps.

`Machine` is the memory manager without a world: groups, address spaces, batches of page touches,
control files, counters.
`Simulation` is one run of a scenario: run until a time, read counters, write a control file,
continue.
"""

from ._pagetide import Machine, Mapping, Simulation, Task

__all__ = ["Machine", "Mapping", "Simulation", "Task"]
