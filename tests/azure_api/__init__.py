"""The room `azure`: what is sent, what may not be, what becomes of answers."""
