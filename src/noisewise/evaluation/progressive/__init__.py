"""How well models predict rows before they learn them.

Files
    progressive       `evaluate`
    validation        the loop over blocks of rows
    looks             intervals at a few times, compared with labels
    players           models of several kinds behind one verb
    running_mean      the baseline that any model should beat
    textbook          the baseline without a ridge, refitted now and then
    losses            what a prediction costs
    result            numbers, a table and a picture
    evaluation_plots  the picture
"""
