"""How good an output is: BLEU and chrF by sacreBLEU, with their signatures, and exact matches."""
