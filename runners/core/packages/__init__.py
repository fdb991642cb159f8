"""Describe the packages of the index: which builds exist (`catalogue`), how versions compare (`versions`), and which
packages a testcase may install (`requirements`)."""
