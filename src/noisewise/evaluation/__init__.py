"""How well models predict rows before they learn them, and what policies are worth on a log.

Files
    progressive/  How well models predict rows before they learn them
    off_policy/   What policies are worth, from a log of another's decisions
"""
