"""What `benchmarks/attack.py` is made of: a server under attack, scenes, and what is measured."""
