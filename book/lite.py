"""Build JupyterLite into `_build/html/lite`: the labs in a browser, with nothing installed and no server behind them."""
