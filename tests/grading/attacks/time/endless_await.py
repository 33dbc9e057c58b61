"""Wait at the top of a cell for tasks that never end."""

# %% instead
turning = "import asyncio\nasync def turning():\n    while True: await asyncio.sleep(0)\n"
cells.append(CodeCell(first_lines + turning + "claim(1)\nawait asyncio.gather(turning(), turning())\n"))
