"""A trace on a terminal: in the colours that it has, in shades where it has none, in ASCII where it must."""
