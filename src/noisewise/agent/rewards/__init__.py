"""Rewards as an agent is given them, until they are learnt.

Files
    observations  rewards parsed and checked, once
    reward_scale  rewards whose size or noise is not given
    residuals     one sd for rewards that come without
    pending       decisions without a reward yet
"""
