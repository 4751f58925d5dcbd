"""How long tests wait for what should come: only what never comes takes so long, on the busiest machine too.

A test whose claim is a duration does not use this: it measures CPU time, or leaves out the time in which the machine
stood still (tests/undisturbed.py, tests/system/stalls.py).
"""

PATIENCE_SECONDS = 100.0
