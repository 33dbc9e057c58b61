"""Let commands of IPython run programs, write files and change the checker."""

# %% instead
lines = ("!touch {watched}/x", "%run /tmp/x.py", "%%bash\ntouch /tmp/x", "%load_ext autoreload", "x = %sx touch /tmp/x", "%%time\nclaim(1)")
cells += [CodeCell(line) for line in (*lines, "%%writefile /tmp/values.py\nx", "get_ipython().system('touch /tmp/x')", "?check", "check??")]
cells += [CodeCell(f"get_ipython().user_ns['check'] = get_ipython().run_cell('{text}')") for text in ("1", "passed")]
