"""Agent: a policy with state, generator and pending decisions; what reads and scales rewards.

Files
    actions/       What an agent chooses from, and how it draws
    rewards/       Rewards as an agent is given them, until they are learnt
    record/        Decisions written down, and past ones read
    explanations/  Why an agent chose, and whether it is well
    comparison/    Groups of decisions compared: the verbs `gain` and `compare`
    agent          `Agent`: policy, state, generator, lock and pending decisions
    learning       the half of it that learns rewards, once and whole
    agent_state    what it writes to a file, and how it is read
    kinds          which policy it has, without importing others
    table_columns  columns of a table as arrays
"""
