"""What an interval says of a claim."""

from fairseq_posenc.errors import UsageError

AS_SAYS, AGAINST, NO_GAIN = "as the paper says", "against it", "no gain that matters"
AS_EXPECTED = "as expected"  # the same, of what the paper did not measure
UNDECIDED, MISSING, NO_VERDICT = "cannot tell", "to be run", "-"
JUDGED = (AS_SAYS, AS_EXPECTED, AGAINST, NO_GAIN, UNDECIDED)
# what a claim may expect of a row, as the page puts it; the margin stands in the braces
EXPECTED = {
    "more": "more, {} matters",
    "less": "less, {} matters",
    "equal": "equal within {}",
    "not less": "at most {} less",
    "not more": "at most {} more",
    "no verdict": "-",
}


def verdict(low: float, high: float, expect: str, margin: float) -> str:
    """Return what an interval says of a claim.

    Args:
        low, high: of the difference, row less base.
        expect: a key of ``EXPECTED``.
        margin: the smallest difference that matters.

    Returns:
        of ``more``: an interval above 0 is as the paper says, and one below 0 against it, if it
        reaches beyond the margin on its side; no gain that matters if it ends below the margin. Of
        ``equal``: as the paper says if it lies within ± margin, against it if outside. Of ``not
        less``, as of what "costs little": as the paper says above -margin, against it below. What
        is none of these cannot be told.
    """
    if expect not in EXPECTED:
        raise UsageError(f"a claim expects {', '.join(EXPECTED)}, not {expect!r}")
    if expect == "no verdict":
        return NO_VERDICT
    if expect in ("less", "not more"):
        low, high = -high, -low
        expect = {"less": "more", "not more": "not less"}[expect]
    if expect == "more":
        if low > 0 and high >= margin:
            return AS_SAYS
        if high < 0 and low <= -margin:
            return AGAINST
        return NO_GAIN if high < margin else UNDECIDED
    if low > -margin and (expect == "not less" or high < margin):
        return AS_SAYS
    beyond = high < -margin or (expect == "equal" and low > margin)
    return AGAINST if beyond else UNDECIDED
