"""How a model's window is shared out, and what cannot be kept."""

from dataclasses import dataclass


class BudgetError(ValueError):
    """A budget that cannot be kept, told before any model is called."""


def check_whole(least: int, **values: object) -> None:
    """Raise BudgetError for a value that is no int (or a bool) or below `least`."""
    for name, value in values.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise BudgetError(
                f"{name} must be a whole number from {least} on: {value!r}"
            )


@dataclass(frozen=True)
class ContextBudget:
    """How a model's window is shared out, in tokens.

    `output` is kept for the reply, `fixed` is the cost of system message, schema and
    template, `reserve` is for what cannot be counted here. Raises BudgetError where
    nothing is left for question and sources.
    """

    window: int
    output: int
    fixed: int
    reserve: int = 1024

    def __post_init__(self) -> None:
        check_whole(1, window=self.window, output=self.output)
        check_whole(0, fixed=self.fixed, reserve=self.reserve)
        if self.variable < 1:
            raise BudgetError(
                f"nothing is left of {self.window} tokens after {self.output} for"
                f" output, {self.fixed} fixed and {self.reserve} in reserve"
            )

    @property
    def variable(self) -> int:
        """Return the tokens that question and sources may cost together."""
        return self.window - self.output - self.fixed - self.reserve
