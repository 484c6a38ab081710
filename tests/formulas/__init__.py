"""Random formulas: drawn (generate.py, patterns.py), evaluated twice (run.py, reference.py), made
small where they fail (shrink.py). `python -m formulas.hunt` looks for as long as one likes."""
