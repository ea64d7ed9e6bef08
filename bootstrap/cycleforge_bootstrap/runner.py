"""The loop that drives the steps: ask whether a step is done, do it, ask again, until its limit."""

import traceback
from typing import Callable, Optional, Sequence

from .core import Context, StepError
from .status import Status

Done = Callable[[Context], bool]
Action = Callable[[Context], None]


class Step:
    """One bounded, repeatable part of the bootstrap.

    `done` says whether the goal is reached, `act` works toward it; after `act` the runner asks `done` again, so a
    program that claims success is not believed. `limit` and `pause` are seconds.
    """

    def __init__(
        self,
        name: str,
        title: str,
        done: Done,
        act: Action,
        limit: float,
        pause: float = 10,
        hint: str = "",
        only_warn: bool = False,
        missing: str = "the goal is not reached yet",
    ) -> None:
        self.name = name
        self.title = title
        self.done = done
        self.act = act
        self.limit = limit
        self.pause = pause
        self.hint = hint
        # The deployment can be used without it: running out of time is a warning, not a failure.
        self.only_warn = only_warn
        # The message while `done` is false although `act` found nothing wrong.
        self.missing = missing
        self.acted = False


def run_steps(context: Context, steps: Sequence[Step], status: Status) -> Optional[StepError]:
    """Run the steps in order; return None, or the reason why one of them failed."""
    status.write()
    for step in steps:
        problem = _run_step(context, step, status)
        if problem is not None:
            return problem
    return None


def _run_step(context: Context, step: Step, status: Status) -> Optional[StepError]:
    started = context.now()
    step.limit = float(context.config["limits"].get("steps", {}).get(step.name, step.limit))
    context.step_deadline = min(started + step.limit, context.deadline)
    attempts = 0
    reason: Optional[StepError] = None
    context.log.write("step {}: {}".format(step.name, step.title))
    _tell(context, status, step, "running")
    while True:
        attempts += 1
        status.step(step.name, state="running", attempts=attempts, seconds=round(context.now() - started))
        problem = _attempt(context, step)
        seconds = round(context.now() - started)
        if problem is None:
            note = "" if step.acted else "nothing to do"
            status.step(step.name, state="done", seconds=seconds, message=note, hint="")
            _tell(context, status, step, "done after {} s".format(seconds))
            context.log.write("step {}: done after {} s {}".format(step.name, seconds, note).rstrip())
            return None
        # An attempt that was ended by the limit must not hide why the earlier ones failed.
        reason = reason if problem.cut_short and reason is not None else problem
        status.step(step.name, message=problem.message, hint=problem.hint or step.hint, seconds=seconds)
        context.log.write("step {}: attempt {}: {}".format(step.name, attempts, problem.message))
        if problem.permanent or context.now() + step.pause >= context.step_deadline:
            return _give_up(context, step, status, reason, attempts)
        context.sleep(step.pause)


def _tell(context: Context, status: Status, step: Step, state: str) -> None:
    """The console gets number, state and title; messages, which quote programs, stay in the status file."""
    names = [entry["name"] for entry in status.document["steps"]]
    number = "{}/{}".format(names.index(step.name) + 1, len(names))
    context.console.write("step {} {}: {}".format(number, state, context.log.clean(step.title)))


def _attempt(context: Context, step: Step) -> Optional[StepError]:
    """One attempt: None if the goal is reached."""
    try:
        if step.done(context):
            return None
        step.acted = True
        step.act(context)
        return None if step.done(context) else StepError(step.missing)
    except StepError as error:
        return error
    except OSError as error:  # a full disk, a folder that is mounted late
        return StepError("{}: {}".format(error.strerror or error, error.filename or "no file"))
    except Exception as error:  # our own mistake must end as a readable failure too
        context.log.write(traceback.format_exc())
        text = "{}: {}".format(type(error).__name__, error)
        return StepError(text, hint="This is a bug in CycleForge: please report it with the log.", permanent=True)


def _give_up(context: Context, step: Step, status: Status, problem: StepError, attempts: int) -> Optional[StepError]:
    message, hint = problem.message, problem.hint or step.hint
    if not problem.permanent:
        whole = context.step_deadline >= context.deadline
        limit = "the whole bootstrap ran out of time" if whole else "gave up after {:.0f} s".format(step.limit)
        message = "{} ({}, {} attempts)".format(message, limit, attempts)
    if step.only_warn and not problem.permanent:
        context.warnings.append("{}: {}. {}".format(step.title, message, hint))
        status.step(step.name, state="warning", message=message, hint=hint)
        _tell(context, status, step, "warning")
        context.log.write("step {}: warning: {}".format(step.name, message))
        return None
    status.step(step.name, state="failed", message=message, hint=hint)
    _tell(context, status, step, "failed")
    context.log.write("step {}: failed: {}. {}".format(step.name, message, hint))
    return StepError(message, hint, permanent=True)
