// A click on the head of a column sorts its table: numbers by value, the rest as words, empty cells last.

const NUMBER = /^[-+]?(\d[\d,]*)?\.?\d+(e[-+]?\d+)?/i

function valueOf(cell) {
  const text = cell.dataset.value ?? cell.textContent.trim().replace("−", "-")
  const [digits] = text.match(NUMBER) ?? []
  return { text, number: digits === undefined ? NaN : Number(digits.replaceAll(",", "")) }
}

function compare(a, b) {
  if (Number.isNaN(a.number) || Number.isNaN(b.number)) return a.text.localeCompare(b.text)
  return a.number - b.number
}

for (const table of document.querySelectorAll("table")) {
  const heads = [...table.tHead.rows[0].cells]
  const [body] = table.tBodies
  heads.forEach((head, column) => {
    const sort = () => {
      const descends = head.getAttribute("aria-sort") === "ascending"
      heads.forEach((other) => other.removeAttribute("aria-sort"))
      head.setAttribute("aria-sort", descends ? "descending" : "ascending")
      const rows = [...body.rows].map((row) => [valueOf(row.cells[column]), row])
      const isFull = ([value]) => value.text
      const full = rows.filter(isFull).sort(([a], [b]) => (descends ? compare(b, a) : compare(a, b)))
      body.append(...[...full, ...rows.filter((row) => !isFull(row))].map(([, row]) => row))
    }
    head.tabIndex = 0
    head.onclick = sort
    head.onkeydown = (event) => event.key === "Enter" && sort()
  })
}
