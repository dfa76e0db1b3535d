"""Tools that run commands, and the processes behind them."""
