// Nothing: the library is linked with those that stand in for ns-3's, and loads them.
