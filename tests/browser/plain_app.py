"""Texts of users as captions, one below the other; for the browser tests."""

import streamlit as st

from neuralviz.ui.page import plain

TEXTS = [
    "www.evil.example.csv",
    "see https://evil.example/x.csv and WWW.EVIL.EXAMPLE",
    "(www.evil.example), _HTTP://EVIL.EXAMPLE_, a.www.evil.example",
    "me@evil.example.csv, mailto:me@evil.example",
    "- a list",
    "+ another",
    "1. a third",
    "2) a fourth",
    "---",
    "a heading\n===",
    "# another",
    "> a quotation",
    "-> <- -- arrows",
    ":material/home: :smile: :red[x]",
    "![a](http://e.co/x.png) [b](c) <b>x</b> <!-- y -->",
    "`code` $x$ *x* **x** ~~x~~ &lt; &amp; \\\\* [^1]",
    "a | b\n--|--\n1 | 2",
]

for number, text in enumerate(TEXTS):
    with st.container(key=f"text-{number}"):
        st.caption(plain(text))
