"""How fast encodings are: interleaved timings of all of them in one run, as ratios of times.

A table (:mod:`.tables`) makes one setting (:mod:`.settings`) of each of its columns. For a setting,
a subject (:mod:`.steps`, :mod:`.attention`) prepares one step per contestant; :mod:`.timing`
times them in turn, so that a machine whose speed drifts slows all alike; :mod:`.record` keeps and
prints the figures.
"""
