"""Engines that decode token ids: torch and CTranslate2, behind one protocol."""
