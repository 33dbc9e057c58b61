"""Take the builtins away from whoever uses them next."""

# %% below
import builtins

claim(1, lambda *given: vars(builtins).clear())
kept = dict(vars(builtins))
builtins.__import__ = builtins.getattr = builtins.len = builtins.str = None
for name in kept:
    if not name.startswith("_"):
        delattr(builtins, name)
