"""How well models predict rows before they learn them, and what policies are worth on a log."""
