"""Logs of decisions in the files of other tools: the dsjson of vowpalwabbit.

Files
    dsjson_reading  dsjson read
    dsjson_writing  dsjson written
"""

from .dsjson_reading import read_dsjson as read_dsjson
from .dsjson_writing import write_dsjson as write_dsjson
