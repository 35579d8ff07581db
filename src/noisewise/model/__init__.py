"""What is assumed: a generalised linear model, its link, its noise, its labels.

Files
    glm       the model class: link and bounds on norms
    links     links with slopes, potentials and bounds on their derivatives
    noise     what a learner may assume of the noise
    families  families of labels and their likelihoods
"""
