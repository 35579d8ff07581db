"""What an agent chooses from, and how it draws.

Files
    action_features  `Arms`: features of every action in a context
    context_fields   numbers, words and hashed words as columns
    offers           a matrix of arms, or a context and actions
    plays            what is played: the policy's choice, a random draw or the baseline
    randomisation    draws and their probabilities
    slates           several actions as one decision
"""
