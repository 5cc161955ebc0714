"""Many scores beside each other: tables, pictures, and the papers' own figures.

One word for each thing, here and in ``tools/scores``:

- *metric*: what is counted, such as sacreBLEU or accuracy;
- *figure*: a metric's number, of one training on one set of sentences, or as a paper prints it;
- *statistics*: counts per sentence, from which the figures of any set of sentences are computed;
- *score*: all figures and statistics of one training on one test set (``Score``);
- *run*: the scores of one row of a table, a score per seed;
- *estimate*: the mean of a figure over the seeds of a run, with its interval;
- *measure*: how a figure of a paper's table is computed from the figures of a training;
- *cell*: one training in the folder of a recipe (of text: one field of a printed table);
- *entry*: a row of a paper's table with ours beside it.
"""
