"""A sentence under construction."""

from fairseq_posenc.tools.corpus import english
from fairseq_posenc.tools.corpus.grammar import Grammar, Surroundings
from fairseq_posenc.tools.corpus.tree import Clause, Sentence


class Draft:
    """A sentence that may still grow by ``rest`` tokens.

    Args:
        grammar: makes the pieces.
        target: the length wanted, in English tokens with punctuation marks.
    """

    def __init__(self, grammar: Grammar, target: int):
        self.grammar, self.dice = grammar, grammar.dice
        first = grammar.clause(Surroundings())
        self.tree = Sentence(first)
        self.rest = target - len(english.clause(first)) - 1
        self._clauses = list(first.clauses())

    def affords(self, tokens: int) -> bool:
        """Return whether this many tokens still fit, and if so, count them as used."""
        if tokens > self.rest:
            return False
        self.rest -= tokens
        return True

    def grown_by(self, clause: Clause) -> bool:
        """Let a clause that was added to the tree grow too; return True."""
        self._clauses += clause.clauses()
        return True

    def clause(self) -> Clause:
        """Return one of all clauses, drawn by chance."""
        return self.dice.pick(self._clauses)

    def main(self) -> Clause:
        """Return one of the main clauses, drawn by chance."""
        others = [other.clause for other in self.tree.others]
        return self.dice.pick([self.tree.first, *others])
