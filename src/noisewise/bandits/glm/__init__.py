"""Rewards with a link, or of a known family.

Files
    glm_ucb           `GLMUCB`
    ucb_glm           `UCBGLM`
    gloc              `GLOC`
    glb_omd           `GLBOMD`
    ofuglb            `OFUGLB`
    likelihood        what policies that know the family share
    greedy            `Greedy`
    laplace_thompson  `LaplaceThompson`
"""
