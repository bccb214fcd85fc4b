"""Long work as runs: a task says what is done, a queue does it, a run says how far it is."""

from neuralviz.jobs.queue import RunQueue, run_queue
from neuralviz.jobs.run import Run, Status
from neuralviz.jobs.task import Progress, Task

__all__ = ["Progress", "Run", "RunQueue", "Status", "Task", "run_queue"]
