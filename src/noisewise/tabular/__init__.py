"""Models of CSV and Parquet files: columns surveyed and encoded, rows streamed by chunks.

Files
    reading      files as data frames, chunk by chunk
    survey       what columns hold: the first pass
    choosing     which columns are used, and as what
    identifiers  columns that number or name the rows
    problems     what stands in the way of a fit
    columns      how columns become features, and what is said of each
    encoding     columns turned into features, always in the same way
    order        are rows sorted?
    fitting      a model of a file
    diagnostics  residuals
    predicting   predictions of a file, or of a data frame
    saving       a model in its folder
"""

from .predicting import predict as predict
