"""Engines: loaded models that run. Importing this imports neither torch nor CTranslate2."""
