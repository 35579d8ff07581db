"""How well models predict rows before they learn them."""
