"""Models of CSV and Parquet files: columns surveyed and encoded, rows streamed by chunks."""

from .predicting import predict as predict
