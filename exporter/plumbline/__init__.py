"""Plumbline: does this storage cluster still perform as on the day it was accepted, and which layer is to blame?"""

__version__ = "0.1.0"
