from neuralviz.words import free_name


def test_a_name_that_is_taken_gets_a_number_behind_it():
    assert free_name("x", ["y"]) == "x"
    assert free_name("x", ["x"]) == "x (2)"
    assert free_name("x", ["x", "x (2)"]) == "x (3)"


def test_or_a_word():
    assert free_name("x", ["x"], "label") == "x (label)"
    assert free_name("x", ["x", "x (label)"], "label") == "x (label 2)"


def test_alike_is_what_is_made_the_same():
    assert free_name("X", ["x"]) == "X"
    assert free_name("X", ["x", "x (LABEL)"], "label", fold=str.casefold) == "X (label 2)"
