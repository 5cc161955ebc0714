"""From translations to ``score.json``: metrics, splits by length, intervals."""
