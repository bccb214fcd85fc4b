// A click on the head of a column sorts its table: numbers by value, the rest as words (2. before 10.),
// empty cells last.

const NUMBER = /^[-+]?(\d[\d,]*)?\.?\d+(e[-+]?\d+)?(?![\d./:-])/i // no date, no place in a list

function valueOf(cell) {
  const text = cell.dataset.value ?? cell.textContent.trim().replace("−", "-")
  const [digits] = text.match(NUMBER) ?? []
  return { text, number: digits === undefined ? NaN : Number(digits.replaceAll(",", "")) }
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
      const isFull = ([{ text }]) => /[\p{L}\p{N}]/u.test(text)
      const full = rows.filter(isFull)
      const isOfNumbers = full.every(([{ number }]) => !Number.isNaN(number))
      const compare = ([a], [b]) =>
        isOfNumbers ? a.number - b.number : a.text.localeCompare(b.text, "en", { numeric: true })
      full.sort((a, b) => (descends ? compare(b, a) : compare(a, b)))
      body.append(...[...full, ...rows.filter((row) => !isFull(row))].map(([, row]) => row))
    }
    head.scope = "col" // else screen readers take a small table for a layout
    head.tabIndex = 0
    head.onclick = sort
    head.onkeydown = (event) => event.key === "Enter" && sort()
  })
}
