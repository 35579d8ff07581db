"""Why an agent chose, and whether it is well.

Files
    reasons           why a policy ranks arms as it does
    explanation       reasons as a table
    reason_sentences  reasons in words
    health            what is odd about decisions and rewards
"""
