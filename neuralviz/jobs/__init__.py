"""Long work as runs: a task says what is done, a queue does it, a run says how far it is."""

from neuralviz.jobs.queue import RunQueue, run_queue
from neuralviz.jobs.task import Progress, Run, Status, Task

__all__ = ["Progress", "Run", "RunQueue", "Status", "Task", "run_queue"]
