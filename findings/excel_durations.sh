#!/usr/bin/env bash
# fastexcel 0.21.0: the kind "duration" turns dates into durations, and "string" durations into dates.
#
# A column with a duration of 24 hours and a date, asked for as "duration", ought to keep or refuse
# the date: it becomes 45,292 days. Asked for as "string", 24 hours become the first of January 1900.
#
# Seen: "string: ['1900-01-01 00:00:00', '2024-01-01 00:00:00']",
#       "duration: [datetime.timedelta(days=1), datetime.timedelta(days=45292)]".
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet fastexcel==0.21.0 openpyxl==3.1.5 pyarrow==26.0.1
"$folder/venv/bin/python" - <<'PYTHON'
import datetime
import io

import fastexcel
import openpyxl

book = openpyxl.Workbook()
book.active.append([datetime.timedelta(hours=24), datetime.datetime(2024, 1, 1)])
file = io.BytesIO()
book.save(file)
seen = {}
for kind in ("string", "duration"):
    sheet = fastexcel.read_excel(file.getvalue()).load_sheet(0, header_row=None, dtypes=kind)
    seen[kind] = [column.to_pylist()[0] for column in sheet.to_arrow().columns]
    print(f"{kind}: {seen[kind]}")
assert seen["string"][0] == "1900-01-01 00:00:00"
assert seen["duration"] == [datetime.timedelta(days=1), datetime.timedelta(days=45292)]
PYTHON
echo "as described"
