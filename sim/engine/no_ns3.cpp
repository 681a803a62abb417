// Nothing: a library of this has the name of one of ns-3's, for the linker.
