"""Tasks: what a model is trained for, each as one object. `task.py` has the interface."""
