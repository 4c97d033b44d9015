from pipelines.report.html_table import number, table, text


def test_tables_escape_nothing_twice_and_numbers_are_right():
    assert text("<a>") == "&lt;a&gt;"
    assert number(0.123456789) == '<td class="number">0.12346</td>'
    assert number(None) == '<td class="number"></td>'
    assert table(("a_b",), [[text("<"), number(0.5, "{:.0%}")]]) == (
        '<div class="wide"><table><tr><th>a_<wbr>b</th></tr><tr><td>&lt;</td>'
        '<td class="number">50%</td></tr></table></div>'
    )
