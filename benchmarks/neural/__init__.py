"""Bi-LSTM and Bi-LSTM-CRF beside the linear taggers."""
