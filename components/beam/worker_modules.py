"""The modules that each worker of Beam imports before it unpickles anything."""

worker_modules = ["components.tfx.compat"]
"""Their names; `components.install` adds one."""
