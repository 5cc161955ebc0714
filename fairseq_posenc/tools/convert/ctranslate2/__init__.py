"""From a checkpoint to a model of CTranslate2."""
