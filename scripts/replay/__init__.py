"""Compare every generated file of two states of the compiler, byte by byte.

`make replay BASE=<commit>` compiles the same programs with the package of that commit and with the
package of the working tree.  A commit that only moves code shows no difference.
"""
