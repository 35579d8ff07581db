"""Decisions written down, and past ones read.

Files
    decision_log    the record: offers, probabilities, rewards
    past_decisions  a table read for `learn_table`
    past_record     how the record keeps it
    left_out        rows that can't be used, by reason
"""
